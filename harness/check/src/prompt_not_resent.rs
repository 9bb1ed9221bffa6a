//! Is the task's prompt left alone after a restart?

use reprise_model::History;

use crate::ground::{
    Finding, Restart, last_user_excerpt, on_the_wire, outline, prompt_baseline, resends_prompt,
    restart, restarted,
};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let baseline = prompt_baseline(history);
    let mut evidence = Vec::new();
    let mut unseen = None;
    let mut looked_at = 0;
    for (epoch, start) in history.restarts() {
        if let Restart::Unseen(why) = restart(history, epoch) {
            unseen = unseen.or(Some(why));
        }
        looked_at += history.main_requests(epoch).count();
        // The first request tells when and how; those of the same turn that follow only repeat it.
        let resent = history
            .main_requests(epoch)
            .find(|request| resends_prompt(request, baseline));
        if let Some(request) = resent {
            evidence.push(on_the_wire(
                request,
                format!(
                    "the task was sent to the model again {:.1} s after restart {epoch}: {}; the message begins: {}",
                    request.at.seconds() - start.at.seconds(),
                    outline(request),
                    last_user_excerpt(request),
                ),
                "the prompt only as history before its own reply, or not at all",
            ));
        }
    }
    if !evidence.is_empty() {
        let times = evidence.len();
        let of = history.restarts().count();
        return Finding::fail(
            format!("the task was sent again after {times} of {of} restart(s)"),
            evidence,
        );
    }
    match unseen {
        Some(why) => Finding::inconclusive(why),
        None => Finding::pass(format!(
            "none of {looked_at} request(s) after a restart sends the prompt as something new"
        )),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{answered, asked, history, outcome, prompt};

    #[test]
    fn passes_the_prompt_as_history() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn passes_a_fresh_session_that_is_not_sent_the_task() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn passes_the_prompt_in_a_side_request() {
        let history = history()
            .task_done()
            .restart()
            .side(vec![prompt()])
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_the_task_sent_to_a_fresh_session() {
        let history = history()
            .task_done()
            .restart()
            .main(vec![prompt()])
            .follow_up(vec![prompt(), answered(1, 0), asked(1)])
            .done();
        let finding = judge(&history);
        assert_eq!(finding.judgement, Judgement::Fail);
        assert_eq!(
            finding.evidence.len(),
            1,
            "one piece of evidence for each restart"
        );
    }

    #[test]
    fn fails_the_task_sent_into_the_continued_session() {
        let history = history()
            .task_done()
            .restart()
            .main(vec![prompt(), answered(0, 0), prompt()])
            .follow_up(vec![
                prompt(),
                answered(0, 0),
                prompt(),
                answered(1, 0),
                asked(1),
            ])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_the_task_sent_on_the_second_restart_only() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .restart()
            .main(vec![
                prompt(),
                answered(0, 0),
                asked(1),
                answered(1, 1),
                prompt(),
            ])
            .done();
        let finding = judge(&history);
        assert_eq!(finding.judgement, Judgement::Fail);
        assert!(finding.summary.contains("1 of 2"), "{}", finding.summary);
    }

    #[test]
    fn cannot_judge_a_restart_that_was_not_seen() {
        let history = history()
            .task_done()
            .restart_ending(outcome::unknown("cut off"))
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
