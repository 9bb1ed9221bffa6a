//! When the first start or the first turn is cut off: is the task lost, sent once, or sent twice?

use reprise_model::{History, Mark, Request, Role};

use crate::ground::{Finding, because, on_the_wire, outline, was_restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = was_restarted(history) {
        return finding;
    }
    let last = history
        .restarts()
        .map(|(epoch, _)| epoch)
        .max()
        .unwrap_or(0);
    let answers: Vec<&Request> = history
        .wire
        .iter()
        .filter(|exchange| {
            exchange.answered()
                && exchange.reply.as_ref().is_some_and(|reply| {
                    reply
                        .marks
                        .iter()
                        .any(|mark| matches!(mark, Mark::Answer { turn: 0, .. }))
                })
        })
        .map(|exchange| &exchange.request)
        .collect();
    if let [_, again, ..] = answers.as_slice() {
        return Finding::fail(
            format!("the task was carried out {} times", answers.len()),
            vec![on_the_wire(again, outline(again), "the task once")],
        );
    }
    if let [one] = answers.as_slice() {
        return Finding::pass(match one.epoch {
            0 => "the task was done before the cut, and not again",
            _ => "the task was sent once, after the cut",
        });
    }
    let carries = |request: &&Request| request.count(Role::User, Mark::Prompt) > 0;
    if let Some(request) = history.main_requests(last).find(carries) {
        return Finding::pass(format!(
            "the task was not sent again, and the session still holds it: {}",
            outline(request)
        ));
    }
    let asked = history.main_requests(last).last();
    match asked {
        Some(request) => Finding::fail(
            "the task is lost: nothing after the cut holds it",
            vec![on_the_wire(
                request,
                outline(request),
                "the task, sent again or in the session's history",
            )],
        ),
        None if history.closing.is_none() => Finding::inconclusive(format!(
            "the record ends before the agent asked its model again{}",
            because(history)
        )),
        None => {
            let reached = history
                .restarts()
                .any(|(_, step)| step.outcome == reprise_model::Outcome::Ok);
            if reached {
                Finding::fail(
                    format!(
                        "the task is lost: the agent asked its model nothing after the cut{}",
                        because(history)
                    ),
                    Vec::new(),
                )
            } else {
                Finding::inconclusive(format!(
                    "the workspace did not start again{}",
                    because(history)
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn lost_once_or_twice() {
        let lost = history()
            .main(vec![prompt()])
            .restart()
            .follow_up(vec![asked(1)])
            .done();
        assert_eq!(judge(&lost).judgement, Judgement::Fail);
        let silent = history().main(vec![prompt()]).restart().done();
        assert_eq!(judge(&silent).judgement, Judgement::Fail);
        let kept = history()
            .main(vec![prompt()])
            .restart()
            .follow_up(vec![prompt(), asked(1)])
            .done();
        assert_eq!(judge(&kept).judgement, Judgement::Pass);
        let again = history().restart().answering(vec![prompt()], 1).done();
        assert_eq!(judge(&again).judgement, Judgement::Pass);
        let twice = history()
            .task_done()
            .restart()
            .answering(vec![prompt()], 1)
            .done();
        assert_eq!(judge(&twice).judgement, Judgement::Fail);
        let cut = history().main(vec![prompt()]).restart().cut_off();
        assert_eq!(judge(&cut).judgement, Judgement::Inconclusive);
    }
}
