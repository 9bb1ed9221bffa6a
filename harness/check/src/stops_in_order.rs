//! Is the conversation's state saved first, then the log snapshot posted, then AgentAPI ended and waited for, all before
//! the stop scripts end?
//!
//! The order is that of `coder/modules/agentapi` since 2.2.0: a workspace that is killed half-way has lost the least.

use reprise_model::{Act, AgentEvent, Class, Evidence, History, Layer, ScriptPhase, Source, Stamp};

use crate::ground::{Finding, Restart, restart, restarted};

/// What was seen of one stop.
struct Stop {
    epoch: u32,
    began: Stamp,
    saved: Vec<Stamp>,
    posted: Option<Stamp>,
    ended: Option<Stamp>,
    scripts_ended: Option<Stamp>,
    problems: Vec<String>,
    /// Whether the agent was asked anything in this start.
    spoken: bool,
}

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no module stands before the agent");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let stops: Vec<Stop> = history
        .steps
        .iter()
        .filter(|step| matches!(step.act, Act::Stop { by: None }))
        .filter_map(|step| seen(history, history.epoch_of(step)))
        .collect();
    let Some(first) = stops.first() else {
        let why = match restart(history, 1) {
            Restart::Unseen(why) => why,
            Restart::Settled | Restart::Refused(..) => {
                return Finding::not_applicable("the workspace is never asked to stop");
            }
        };
        return Finding::inconclusive(why);
    };
    let told = told(first);
    let evidence: Vec<Evidence> = stops.iter().flat_map(wrong).collect();
    match evidence.first() {
        Some(first) => Finding::fail(first.saw.clone(), evidence),
        None => Finding::pass(told),
    }
}

fn seen(history: &History, epoch: u32) -> Option<Stop> {
    let mut stop: Option<Stop> = None;
    for (at, event) in history.agent_events(epoch) {
        if let AgentEvent::Stopping { .. } = event {
            stop = Some(Stop {
                epoch,
                began: at,
                saved: Vec::new(),
                posted: None,
                ended: None,
                scripts_ended: None,
                problems: Vec::new(),
                spoken: history.main_requests(epoch).next().is_some(),
            });
        }
        let Some(stop) = &mut stop else { continue };
        match event {
            AgentEvent::FileWritten { size, .. } if *size > 0 => stop.saved.push(at),
            AgentEvent::ProgramEnded { .. } => stop.ended = Some(at),
            AgentEvent::ScriptEnded {
                phase: ScriptPhase::Stop,
                name,
                code,
                problem,
                ..
            } => {
                stop.scripts_ended = stop.scripts_ended.max(Some(at));
                if *code != Some(0) || problem.is_some() {
                    let code = code.map_or("no exit code".to_owned(), |code| {
                        format!("exit code {code}")
                    });
                    let problem = problem.as_deref().unwrap_or("");
                    stop.problems.push(format!(
                        "stop script `{name}` ended badly: {code} {problem}"
                    ));
                }
            }
            _ => {}
        }
    }
    let mut stop = stop?;
    stop.posted = history
        .wire
        .iter()
        .map(|exchange| &exchange.request)
        .find(|request| request.epoch == epoch && request.class == Class::Control)
        .map(|request| request.at);
    Some(stop)
}

fn after(stop: &Stop, at: Option<Stamp>) -> String {
    match at {
        None => "never".to_owned(),
        Some(at) => format!("after {:.1} s", at.seconds() - stop.began.seconds()),
    }
}

fn told(stop: &Stop) -> String {
    format!(
        "state saved {}, log snapshot posted {}, AgentAPI ended {}, scripts ended {}",
        after(stop, stop.saved.first().copied()),
        after(stop, stop.posted),
        after(stop, stop.ended),
        after(stop, stop.scripts_ended)
    )
}

fn wrong(stop: &Stop) -> Vec<Evidence> {
    let mut wrong: Vec<String> = stop.problems.clone();
    if stop.scripts_ended.is_none() {
        wrong.push("no stop script ended".to_owned());
    }
    let saved = stop.saved.first().copied();
    if let (Some(saved), Some(posted)) = (saved, stop.posted)
        && saved > posted
    {
        wrong.push("the state was saved only after the log snapshot was posted".to_owned());
    }
    // AgentAPI saves nothing where nothing was said.
    if let (None, Some(_), true) = (saved, stop.ended, stop.spoken) {
        wrong.push("the state was never saved".to_owned());
    }
    if let (Some(posted), Some(ended)) = (stop.posted, stop.ended)
        && posted > ended
    {
        wrong.push("the log snapshot was posted after AgentAPI had ended".to_owned());
    }
    match (stop.ended, stop.scripts_ended) {
        (None, Some(_)) => wrong.push("AgentAPI was never ended".to_owned()),
        // It is looked at fifty times a second.
        (Some(ended), Some(scripts)) if ended.seconds() > scripts.seconds() + 0.1 => {
            wrong.push("nobody waited for AgentAPI's end".to_owned());
        }
        _ => {}
    }
    wrong
        .into_iter()
        .map(|saw| Evidence {
            source: Source::History,
            at: Some(stop.began),
            saw: format!("at the end of start {}, {saw} ({})", stop.epoch, told(stop)),
            expected: Some(
                "the state saved, then the log snapshot, then AgentAPI's end, then the script's"
                    .to_owned(),
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn the_order_matters() {
        let stop = |events: &[&str]| {
            let mut history = history().task_done().stopping();
            for event in events {
                history = match *event {
                    "saved" => history.event(AgentEvent::FileWritten {
                        path: "state".to_owned(),
                        size: 9,
                    }),
                    "posted" => history.control(vec![prompt()], 204),
                    "ended" => history.event(AgentEvent::ProgramEnded {
                        name: "agentapi".to_owned(),
                    }),
                    "script" => history.stop_script(Some(0)),
                    _ => history.stop_script(Some(1)),
                };
            }
            judge(&history.restart().done())
        };
        let good = stop(&["saved", "posted", "ended", "script"]);
        assert_eq!(good.judgement, Judgement::Pass, "{good:?}");
        for bad in [
            &["posted", "saved", "ended", "script"][..],
            &["posted", "ended", "script"],
            &["saved", "ended", "posted", "script"],
            &["saved", "posted", "script"],
            &["saved", "posted", "ended", "fails"],
            &["saved", "posted", "ended"],
        ] {
            assert_eq!(stop(bad).judgement, Judgement::Fail, "{bad:?}");
        }
    }

    #[test]
    fn a_record_that_ends_before_is_inconclusive() {
        let history = history().task_done().cut_off();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
