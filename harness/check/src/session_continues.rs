//! Does the follow-up's request carry the replies given before the restart?

use reprise_model::{Evidence, History, Mark, Outcome, Request, Role};

use crate::ground::{
    FIRST_ANSWER, Finding, follow_up_request, in_short, in_step, not_back, on_disk, on_the_wire,
    outline, restarted, task_answered,
};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let (mut evidence, mut unseen) = not_back(history);
    let mut continued = 0;
    let mut turns_lost = 0;
    let mut replies = Vec::new();
    if task_answered(history).is_some() {
        replies.push(FIRST_ANSWER);
    }
    for (turn, step) in history.follow_ups() {
        let epoch = history.epoch_of(step);
        let Some(request) = follow_up_request(history, epoch, turn) else {
            match &step.outcome {
                Outcome::Unknown { reason } => {
                    unseen = unseen.or(Some(format!(
                        "follow-up {turn} was not delivered: {reason}"
                    )));
                }
                Outcome::Ok => evidence.push(in_step(
                    step,
                    format!("follow-up {turn} was taken, and no request to the model held it"),
                    "a request that holds the follow-up",
                )),
                Outcome::Failed { reason } => evidence.push(in_step(
                    step,
                    format!("follow-up {turn} never reached the model: {reason}"),
                    "a request that holds the follow-up",
                )),
            }
            continue;
        };
        let missing = missing(request, &replies);
        turns_lost = turns_lost.max(missing.len() as u64);
        let problems = problems(request, turn, &replies, &missing);
        if problems.is_empty() && epoch > 0 {
            continued += 1;
        }
        evidence.extend(problems);
        replies.push(Mark::Answer { epoch, turn });
    }
    if !evidence.is_empty() {
        let first = in_short(&evidence[0]);
        evidence.extend(
            history
                .restarts()
                .next()
                .and_then(|(epoch, _)| on_disk(history, epoch)),
        );
        let mut finding = Finding::fail(first, evidence);
        if turns_lost > 0 {
            finding.figures.insert("turns_lost".to_owned(), turns_lost);
        }
        return finding;
    }
    if let Some(why) = unseen {
        return Finding::inconclusive(why);
    }
    if continued == 0 {
        return Finding::inconclusive("no follow-up was sent after a restart");
    }
    Finding::pass(format!(
        "{continued} follow-up(s) carried every earlier reply, in order, once"
    ))
}

/// The earlier replies that a request does not carry.
fn missing(request: &Request, replies: &[Mark]) -> Vec<Mark> {
    let missing = |reply: &Mark| request.count(Role::Assistant, *reply) == 0;
    replies.iter().copied().filter(missing).collect()
}

/// What is wrong with the history that a follow-up's request carries.
fn problems(request: &Request, turn: u32, replies: &[Mark], missing: &[Mark]) -> Vec<Evidence> {
    let expected = "the session's history: every earlier reply as an assistant's message, in order, once, before the follow-up";
    let mut problems = Vec::new();
    let mut previous = None;
    let asked = request.place(Role::User, Mark::FollowUp { turn });
    if missing.len() == replies.len() && !replies.is_empty() {
        problems.push(on_the_wire(
            request,
            format!(
                "follow-up {turn} came from a fresh session: its request holds none of the earlier replies: {}",
                outline(request)
            ),
            expected,
        ));
        return problems;
    }
    if !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(Mark::to_string).collect();
        problems.push(on_the_wire(
            request,
            format!(
                "follow-up {turn} came from a session that lost {}: {}",
                missing.join(", "),
                outline(request)
            ),
            expected,
        ));
    }
    for reply in replies {
        let Some(place) = request.place(Role::Assistant, *reply) else {
            continue;
        };
        if request.count(Role::Assistant, *reply) > 1 {
            problems.push(on_the_wire(
                request,
                format!("{reply} stands more than once: {}", outline(request)),
                expected,
            ));
        }
        if previous.is_some_and(|previous| place < previous)
            || asked.is_some_and(|asked| place > asked)
        {
            problems.push(on_the_wire(
                request,
                format!("{reply} stands out of order: {}", outline(request)),
                expected,
            ));
        }
        previous = Some(place);
    }
    problems
}

#[cfg(test)]
mod tests {
    use reprise_model::{Judgement, Role};

    use super::*;
    use crate::literal::{answered, asked, called, history, outcome, prompt, resulted, told};

    #[test]
    fn passes_a_session_that_goes_on() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![
                prompt(),
                called(0),
                resulted(0),
                answered(0, 0),
                asked(1),
            ])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_a_fresh_session() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![asked(1)])
            .done();
        let finding = judge(&history);
        assert_eq!(finding.judgement, Judgement::Fail);
        assert!(
            finding.summary.contains("fresh session"),
            "{}",
            finding.summary
        );
        assert_eq!(finding.evidence.len(), 1);
    }

    #[test]
    fn fails_a_fresh_session_that_was_sent_the_task_again() {
        let history = history()
            .task_done()
            .restart()
            .main(vec![prompt()])
            .follow_up(vec![prompt(), answered(1, 0), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_replies_out_of_order_or_twice() {
        for conversation in [
            vec![prompt(), asked(1), answered(0, 0)],
            vec![prompt(), answered(0, 0), answered(0, 0), asked(1)],
        ] {
            let history = history()
                .task_done()
                .restart()
                .follow_up(conversation)
                .done();
            assert_eq!(judge(&history).judgement, Judgement::Fail);
        }
    }

    #[test]
    fn fails_a_reply_that_only_a_user_repeats() {
        let quoted = told(Role::User, vec![FIRST_ANSWER]);
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![prompt(), quoted, asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_an_agent_that_does_not_come_back() {
        let history = history()
            .task_done()
            .restart_ending(outcome::failed("the start script exited with 1"))
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_a_second_restart_that_loses_the_first_follow_up() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .restart()
            .follow_up(vec![prompt(), answered(0, 0), asked(2)])
            .done();
        let finding = judge(&history);
        assert_eq!(finding.judgement, Judgement::Fail);
        assert!(
            finding.summary.contains("reply to follow-up 1"),
            "{}",
            finding.summary
        );
    }

    #[test]
    fn cannot_judge_a_workspace_that_did_not_start() {
        let history = history()
            .task_done()
            .restart_ending(outcome::unknown("the daemon went away"))
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }

    #[test]
    fn cannot_judge_a_record_cut_off_before_the_restart() {
        let history = history().task_done().cut_off();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }

    #[test]
    fn cannot_judge_where_the_task_was_never_answered() {
        let history = history().restart().follow_up(vec![asked(1)]).done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
