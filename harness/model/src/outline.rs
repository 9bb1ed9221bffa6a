//! A history without what differs from run to run: times, ids, versions, and what several things do beside each other.

use std::fmt::Write;

use crate::{AgentEvent, Class, History, Mark, Observation, Outcome, Stamp};

/// The history's outline: a line for each act and each event of a workspace, in order, and after them one for each turn, in order.
/// An agent speaks with its model while its module's scripts go on, so the two are not told in one. Two engines that do the same
/// give the same.
#[must_use]
pub fn outline(history: &History) -> Vec<String> {
    let mut lines: Vec<(Stamp, String)> = Vec::new();
    for step in &history.steps {
        lines.push((step.at, format!("{}: {}", step.act, ended(&step.outcome))));
    }
    for (at, observation) in &history.observations {
        if let Some(line) = seen(observation) {
            lines.push((*at, line));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    for exchange in &history.wire {
        let request = &exchange.request;
        if matches!(request.class, Class::Main | Class::Control) {
            let end = exchange.reply.as_ref().map_or("no reply", |reply| {
                if reply.status == 200 || reply.status == 204 {
                    "answered"
                } else {
                    "refused"
                }
            });
            let mut line = format!(
                "start {}, {:?} request, {end}:",
                request.epoch, request.class
            );
            for message in &request.conversation {
                let marks: Vec<String> = message.marks.iter().map(Mark::to_string).collect();
                let _ = write!(line, " [{}: {}]", message.role, marks.join(", "));
            }
            lines.push(line);
        }
    }
    lines
}

fn ended(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Failed { .. } => "failed",
        Outcome::Unknown { .. } => "unknown",
    }
}

fn seen(observation: &Observation) -> Option<String> {
    Some(match observation {
        Observation::Agent { event, .. } => match event {
            AgentEvent::ScriptStarted { name, phase, .. } => {
                format!("  {phase:?} script `{name}` begins")
            }
            AgentEvent::ScriptEnded { name, code, .. } => {
                format!("  script `{name}` ends with {code:?}")
            }
            AgentEvent::Stopping { signal } => format!("  PID 1 is told {signal}"),
            AgentEvent::Stopped { left } => {
                format!("  PID 1 ends, and {} process(es) with it", left.len())
            }
            AgentEvent::HomePruned { kept } => format!("  the home keeps {}", kept.join(", ")),
            AgentEvent::HomeDamaged { files } => format!("  damaged are {}", files.join(", ")),
            AgentEvent::Trouble { message } => format!("  trouble: {message}"),
            _ => return None,
        },
        Observation::Command { argv, code, .. } => {
            let program = argv.first().map_or("", String::as_str);
            format!("  {program} ends with {code:?}")
        }
        Observation::Marks {
            home,
            outside,
            process,
            ..
        } => format!("  marks: home {home}, outside {outside:?}, process {process}"),
        Observation::NoncesInFiles { files } => format!(
            "  words of ours in {}",
            files.keys().cloned().collect::<Vec<_>>().join(", ")
        ),
        _ => return None,
    })
}
