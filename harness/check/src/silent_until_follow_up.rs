//! Does the agent ask its model nothing else between a restart and the follow-up?
//!
//! A request that sends the task again is `prompt_not_resent`'s to report; this check is for the turns nobody
//! asked for.

use reprise_model::{Act, History};

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
    for (epoch, start) in history.restarts() {
        if let Restart::Unseen(why) = restart(history, epoch) {
            unseen = unseen.or(Some(why));
        }
        let follow_up = history.steps.iter().find(|step| {
            step.op > start.op
                && matches!(
                    step.act,
                    Act::FollowUp { .. }
                        | Act::BeginFollowUp { .. }
                        | Act::TryFollowUp { .. }
                        | Act::OpenOtherSession
                        | Act::Task
                        | Act::BeginTask
                        | Act::Start { .. }
                )
        });
        evidence.extend(
            history
                .main_requests(epoch)
                .filter(|request| follow_up.is_none_or(|step| request.at < step.at))
                .filter(|request| !resends_prompt(request, baseline))
                .map(|request| {
                    on_the_wire(
                        request,
                        format!(
                            "a turn nobody asked for, {:.1} s after restart {epoch}: {}; its last user message begins: {}",
                            request.at.seconds() - start.at.seconds(),
                            outline(request),
                            last_user_excerpt(request),
                        ),
                        "no turn before the follow-up",
                    )
                }),
        );
    }
    if !evidence.is_empty() {
        return Finding::fail(
            format!("{} turn(s) nobody asked for", evidence.len()),
            evidence,
        );
    }
    match unseen {
        Some(why) => Finding::inconclusive(why),
        None => Finding::pass("no turn that was not asked for before a follow-up"),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{answered, asked, history, outcome, prompt, user};

    #[test]
    fn passes_silence() {
        let history = history()
            .task_done()
            .restart()
            .follow_up(vec![prompt(), answered(0, 0), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn leaves_the_resent_task_to_its_own_check() {
        let history = history().task_done().restart().main(vec![prompt()]).done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_a_turn_nobody_asked_for() {
        let history = history()
            .task_done()
            .restart()
            .main(vec![prompt(), answered(0, 0), user()])
            .follow_up(vec![prompt(), answered(0, 0), user(), asked(1)])
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
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
