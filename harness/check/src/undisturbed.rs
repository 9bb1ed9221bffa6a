//! Does the workspace go on as if nothing had happened while what runs it on its node ends and is started again?

use reprise_model::{Act, AgentEvent, History, Mark, Observation, Outcome, Role};

use crate::ground::{
    FIRST_ANSWER, Finding, because, follow_up_request, in_short, in_step, on_the_wire, outline,
    task_answered,
};

pub(crate) fn judge(history: &History) -> Finding {
    let Some(step) = history.step(&Act::RestartNodeAgent) else {
        return Finding::not_applicable("nothing that runs the workspace is started again");
    };
    if task_answered(history).is_none() {
        return Finding::inconclusive(format!(
            "the task was never answered, so there was nothing to disturb{}",
            because(history)
        ));
    }
    if step.outcome != Outcome::Ok {
        return Finding::inconclusive(format!(
            "what runs the workspace was not started again{}",
            because(history)
        ));
    }
    let after = history
        .follow_ups()
        .find(|(_, follow_up)| follow_up.op > step.op);
    let mut evidence = Vec::new();
    let instances = history
        .observations
        .iter()
        .filter(|(_, seen)| matches!(seen, Observation::Instance { .. }))
        .count();
    let boots = history
        .agent_events(0)
        .filter(|(_, event)| matches!(event, AgentEvent::Booted { .. }))
        .count();
    if instances > 1 || boots > 1 {
        evidence.push(in_step(
            step,
            "the workspace was started again, too",
            "the same instance, running on",
        ));
    }
    evidence.extend(
        history
            .main_requests(0)
            .filter(|request| request.at > step.at)
            .filter(|request| after.is_none_or(|(_, follow_up)| request.at < follow_up.at))
            .map(|request| {
                on_the_wire(
                    request,
                    format!("a turn nobody asked for: {}", outline(request)),
                    "no turn before the follow-up",
                )
            }),
    );
    let Some((turn, follow_up)) = after else {
        return Finding::inconclusive("no follow-up was sent afterwards");
    };
    match follow_up_request(history, 0, turn) {
        Some(request) => {
            let asked = request.place(Role::User, Mark::FollowUp { turn });
            let answered = request.place(Role::Assistant, FIRST_ANSWER);
            if answered.is_none() || answered > asked {
                evidence.push(on_the_wire(
                    request,
                    format!("the session does not go on: {}", outline(request)),
                    "the session's history before the follow-up",
                ));
            }
        }
        None => match &follow_up.outcome {
            Outcome::Unknown { reason } => {
                return Finding::inconclusive(format!("the follow-up was not delivered: {reason}"));
            }
            Outcome::Ok | Outcome::Failed { .. } => evidence.push(in_step(
                follow_up,
                "the follow-up never reached the model",
                "a request that holds the follow-up",
            )),
        },
    }
    match evidence.first() {
        Some(first) => Finding::fail(in_short(first), evidence),
        None => Finding::pass("the workspace and its session went on"),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{answered, asked, history, outcome, prompt, user};

    #[test]
    fn passes_a_session_that_goes_on() {
        let history = history()
            .task_done()
            .node_agent_restarted(Outcome::Ok)
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_a_workspace_that_was_started_again() {
        let history = history()
            .booted(0)
            .task_done()
            .node_agent_restarted(Outcome::Ok)
            .booted(0)
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn fails_a_fresh_session_and_a_turn_nobody_asked_for() {
        let fresh = history()
            .task_done()
            .node_agent_restarted(Outcome::Ok)
            .follow_up(vec![asked(1)])
            .done();
        assert_eq!(judge(&fresh).judgement, Judgement::Fail);
        let unasked = history()
            .task_done()
            .node_agent_restarted(Outcome::Ok)
            .main(vec![prompt(), answered(0, 0), user()])
            .follow_up(vec![prompt(), answered(0, 0), user(), asked(1)])
            .done();
        assert_eq!(judge(&unasked).judgement, Judgement::Fail);
    }

    #[test]
    fn cannot_judge_what_did_not_take_place() {
        let cut = history()
            .task_done()
            .node_agent_restarted(outcome::unknown("no kubelet came"))
            .done();
        assert_eq!(judge(&cut).judgement, Judgement::Inconclusive);
        assert_eq!(
            judge(&history().task_done().restart().done()).judgement,
            Judgement::NotApplicable
        );
    }
}
