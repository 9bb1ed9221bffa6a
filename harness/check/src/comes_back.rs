//! Whatever befell its session: does the agent come back, and answer its user?
//!
//! A damaged session may be lost. An agent that does not start any more, or does not answer, has lost its workspace.

use reprise_model::{History, Mark, Outcome, Role};

use crate::ground::{Finding, because, follow_up_request, in_step, not_back, was_restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = was_restarted(history) {
        return finding;
    }
    let (mut evidence, mut unseen) = not_back(history);
    let mut after = Vec::new();
    for (turn, step) in history.follow_ups() {
        let epoch = history.epoch_of(step);
        if epoch == 0 {
            continue;
        }
        match &step.outcome {
            Outcome::Ok => after.push((epoch, turn)),
            Outcome::Failed { reason } => evidence.push(in_step(
                step,
                format!("follow-up {turn} was not answered: {reason}"),
                "an answer, in whatever session",
            )),
            Outcome::Unknown { reason } => unseen = unseen.or(Some(reason.clone())),
        }
    }
    if let Some(first) = evidence.first() {
        return Finding::fail(first.saw.clone(), evidence);
    }
    if let Some(why) = unseen {
        return Finding::inconclusive(why);
    }
    let Some((epoch, turn)) = after.first() else {
        return Finding::inconclusive(format!(
            "no follow-up was sent after a restart{}",
            because(history)
        ));
    };
    let request = follow_up_request(history, *epoch, *turn);
    let resent = history.main_requests(*epoch).any(|request| {
        request
            .last()
            .is_some_and(|last| last.holds(Role::User, Mark::Prompt))
    });
    let continued = request.is_some_and(|request| {
        request
            .conversation
            .iter()
            .any(|message| message.role == Role::Assistant && !message.marks.is_empty())
    });
    Finding::pass(match (continued, resent) {
        (true, _) => "it came back with its session",
        (false, true) => "it came back in a fresh session, and was given the task again",
        (false, false) => "it came back in a fresh session, and the task was left alone",
    })
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn it_must_start_and_answer() {
        let fresh = history()
            .task_done()
            .restart()
            .follow_up(vec![asked(1)])
            .done();
        let finding = judge(&fresh);
        assert_eq!(finding.judgement, Judgement::Pass);
        assert!(
            finding.summary.contains("left alone"),
            "{}",
            finding.summary
        );
        let same = history()
            .task_done()
            .restart()
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .done();
        assert!(judge(&same).summary.contains("with its session"));
        let dead = history()
            .task_done()
            .restart_ending(outcome::failed("it crashed"))
            .done();
        assert_eq!(judge(&dead).judgement, Judgement::Fail);
        let unseen = history()
            .task_done()
            .restart_ending(outcome::unknown("the daemon went"))
            .done();
        assert_eq!(judge(&unseen).judgement, Judgement::Inconclusive);
    }
}
