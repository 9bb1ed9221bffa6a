//! Does a continued session still hold its tool calls and their results?

use reprise_model::{History, Mark, Outcome, Role};

use crate::ground::{
    FIRST_ANSWER, Finding, because, follow_up_request, in_short, on_the_wire, outline, restarted,
};

const CALL: Mark = Mark::Tool { epoch: 0 };

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let carried_out = history
        .main_requests(0)
        .any(|request| request.count(Role::Tool, CALL) > 0);
    if history.main_requests(0).all(|request| request.tools == 0) {
        return Finding::not_applicable("the agent offers its model no tool");
    }
    if !carried_out {
        return Finding::inconclusive("no tool call was carried out before the restart");
    }
    let mut evidence = Vec::new();
    let mut judged = 0;
    let mut fresh = 0;
    for (turn, step) in history.follow_ups() {
        let Some(request) = follow_up_request(history, history.epoch_of(step), turn) else {
            continue;
        };
        if request.count(Role::Assistant, FIRST_ANSWER) == 0 {
            fresh += 1;
            continue;
        }
        judged += 1;
        let call = request.place(Role::Assistant, CALL);
        let result = request.place(Role::Tool, CALL);
        let answer = request.place(Role::Assistant, FIRST_ANSWER);
        let lost = match (call, result) {
            (None, None) => Some("neither the call nor its result"),
            (None, Some(_)) => Some("the result without its call"),
            (Some(_), None) => Some("the call without its result"),
            (Some(call), Some(result)) if call > result || Some(result) > answer => {
                Some("the call and its result out of order")
            }
            (Some(_), Some(_)) => None,
        };
        if let Some(lost) = lost {
            evidence.push(on_the_wire(
                request,
                format!("follow-up {turn} carries {lost}: {}", outline(request)),
                "the tool call, then its result, then the reply",
            ));
        }
    }
    if !evidence.is_empty() {
        return Finding::fail(in_short(&evidence[0]), evidence);
    }
    match (judged, fresh) {
        (0, 0) if refused(history) => Finding::not_applicable(
            "no follow-up reached the model, which is the agent's doing (see session_continues)",
        ),
        (0, 0) => Finding::inconclusive(format!(
            "no follow-up reached the model{}",
            because(history)
        )),
        (0, _) => Finding::not_applicable(
            "the session did not continue (see session_continues), so there is no history to hold them",
        ),
        _ => Finding::pass(format!(
            "{judged} follow-up(s) carried the tool call and its result"
        )),
    }
}

/// Whether the agent or its module did not do its part.
fn refused(history: &History) -> bool {
    history
        .steps
        .iter()
        .any(|step| matches!(step.outcome, Outcome::Failed { .. }))
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{answered, asked, called, history, prompt, resulted};

    #[test]
    fn passes_call_and_result() {
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
    fn fails_a_result_without_its_call_and_the_reverse() {
        for conversation in [
            vec![prompt(), resulted(0), answered(0, 0), asked(1)],
            vec![prompt(), called(0), answered(0, 0), asked(1)],
            vec![prompt(), answered(0, 0), asked(1)],
            vec![prompt(), resulted(0), called(0), answered(0, 0), asked(1)],
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
    fn leaves_a_fresh_session_to_its_own_check() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::NotApplicable);
    }

    #[test]
    fn cannot_judge_without_a_follow_up() {
        let history = history().task_done().restart().cut_off();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
