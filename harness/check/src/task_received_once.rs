//! Does the task reach the model once at the first start?

use reprise_model::{Act, History, Mark, Outcome, Request, Role};

use crate::ground::{Finding, because, in_step, on_the_wire, outline};

pub(crate) fn judge(history: &History) -> Finding {
    let opens = |request: &Request| {
        request
            .place(Role::User, Mark::Prompt)
            .is_some_and(|place| {
                request.conversation[place..]
                    .iter()
                    .all(|message| matches!(message.role, Role::User | Role::System))
            })
    };
    // A client may send the same request again after a broken reply, so only those whose reply was taken count.
    let opened: Vec<&Request> = history
        .main_exchanges(0)
        .filter(|exchange| exchange.answered() && opens(&exchange.request))
        .map(|exchange| &exchange.request)
        .collect();
    let doubled = history.main_requests(0).find(|request| {
        request.count(Role::User, Mark::Prompt)
            > opened
                .first()
                .map_or(1, |first| first.count(Role::User, Mark::Prompt))
    });
    if let Some(request) = doubled {
        return Finding::fail(
            "the task was sent twice into one session",
            vec![on_the_wire(request, outline(request), "the task once")],
        );
    }
    match opened.as_slice() {
        [] => never(history),
        [_] => Finding::pass("the task reached the model once"),
        several => Finding::fail(
            format!("the task was sent {} times", several.len()),
            several
                .iter()
                .map(|request| on_the_wire(request, outline(request), "the task once"))
                .collect(),
        ),
    }
}

/// The task never arrived: behaviour if the agent was ready for it, set-up if it was not.
fn never(history: &History) -> Finding {
    let ready = history
        .step(&Act::Start { epoch: 0 })
        .is_some_and(|step| step.outcome == Outcome::Ok);
    match history.step(&Act::Task) {
        Some(step) if ready => match &step.outcome {
            Outcome::Unknown { reason } => Finding::inconclusive(reason.clone()),
            Outcome::Failed { reason } => Finding::fail(
                "the task never reached the model",
                vec![in_step(
                    step,
                    reason.clone(),
                    "a request that holds the task",
                )],
            ),
            Outcome::Ok => Finding::fail(
                "the task never reached the model",
                vec![in_step(
                    step,
                    "the agent called its task done without asking its model",
                    "a request that holds the task",
                )],
            ),
        },
        _ => Finding::inconclusive(format!(
            "the agent was never ready for its task{}",
            because(history)
        )),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{history, outcome, prompt};

    #[test]
    fn passes_one_task() {
        assert_eq!(
            judge(&history().task_done().done()).judgement,
            Judgement::Pass
        );
    }

    #[test]
    fn passes_a_retry_after_a_broken_reply() {
        let history = history().broken(vec![prompt()]).task_done().done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_the_task_in_two_sessions() {
        let history = history().task_done().main(vec![prompt()]).done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_the_task_twice_in_one_session() {
        let history = history().task_done().main(vec![prompt(), prompt()]).done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_a_ready_agent_that_never_got_its_task() {
        let history = history().task_ending(outcome::failed("60 s passed")).done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn cannot_judge_an_agent_that_was_never_ready() {
        let history = history().start_ending(outcome::failed("exit 1")).done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
