//! When the stop scripts have ended, has every process of the module and its agent?
//!
//! What still runs then is killed with the workspace, in the middle of whatever it does.

use reprise_model::{AgentEvent, Evidence, History, Layer, Source};

use crate::ground::{Finding, because, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no agent runs between its commands");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let mut stops = 0;
    let mut evidence = Vec::new();
    for (at, observation) in &history.observations {
        let reprise_model::Observation::Agent {
            epoch,
            event: AgentEvent::Stopped { left },
        } = observation
        else {
            continue;
        };
        stops += 1;
        evidence.extend(left.iter().map(|command| Evidence {
            source: Source::History,
            at: Some(*at),
            saw: format!(
                "when the stop scripts of start {epoch} had ended, this still ran: {command}"
            ),
            expected: Some("no process of the module's or its agent's".to_owned()),
        }));
    }
    match (evidence.first(), stops) {
        (Some(first), _) => Finding::fail(first.saw.clone(), evidence),
        (None, 0) => Finding::inconclusive(format!("no stop came to its end{}", because(history))),
        (None, _) => Finding::pass(format!("nothing ran any more after {stops} stop(s)")),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn a_process_that_stays_is_named() {
        let stopped = |left: &[&str]| {
            let left = left.iter().map(ToString::to_string).collect();
            let history = history()
                .task_done()
                .event(AgentEvent::Stopped { left })
                .restart()
                .done();
            judge(&history)
        };
        assert_eq!(stopped(&[]).judgement, Judgement::Pass);
        let finding = stopped(&["agentapi server"]);
        assert_eq!(finding.judgement, Judgement::Fail);
        assert!(finding.summary.contains("agentapi server"));
        let killed = history().task_done().restart().done();
        assert_eq!(judge(&killed).judgement, Judgement::Inconclusive);
    }
}
