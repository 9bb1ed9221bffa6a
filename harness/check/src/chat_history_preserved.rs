//! Does AgentAPI show after a restart what it showed before?
//!
//! Screens are drawn anew, so an agent's words may be laid out otherwise: what counts is who spoke, in which order, and the
//! nonces that were shown.

use reprise_model::{Evidence, History, Layer, Mark, Message, Moment, Role, Source};

use crate::ground::{Finding, Restart, because, restart, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no AgentAPI stands before the agent");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let mut evidence = Vec::new();
    let mut unseen = None;
    let mut kept = 0;
    for (epoch, start) in history.restarts() {
        if let Restart::Unseen(why) = restart(history, epoch) {
            unseen = unseen.or(Some(why));
            continue;
        }
        let before = history.shown(Moment::Before(epoch));
        let after = history.shown(Moment::Settled(epoch));
        let (Some(before), Some(after)) = (before, after) else {
            unseen = unseen.or(Some(format!(
                "what AgentAPI showed around restart {epoch} is not recorded{}",
                because(history)
            )));
            continue;
        };
        match lost(before, after) {
            Some(saw) => evidence.push(Evidence {
                source: Source::History,
                at: Some(start.at),
                saw: format!("after restart {epoch} {saw}"),
                expected: Some(format!(
                    "every one of the {} message(s) shown before, in order",
                    before.len()
                )),
            }),
            None => kept += before.len(),
        }
    }
    match (evidence.first(), unseen) {
        (Some(first), _) => Finding::fail(first.saw.clone(), evidence),
        (None, Some(why)) => Finding::inconclusive(why),
        (None, None) => Finding::pass(format!("all {kept} message(s) are shown again")),
    }
}

/// The nonces that were shown, each with who said it, in order.
fn said(messages: &[Message]) -> Vec<(Role, Mark)> {
    messages
        .iter()
        .flat_map(|message| message.marks.iter().map(|mark| (message.role, *mark)))
        .collect()
}

fn lost(before: &[Message], after: &[Message]) -> Option<String> {
    let users = |messages: &[Message]| {
        messages
            .iter()
            .filter(|message| message.role == Role::User)
            .count()
    };
    let (was, is) = (said(before), said(after));
    let mut rest = is.iter();
    let missing: Vec<String> = was
        .iter()
        .filter(|wanted| !rest.by_ref().any(|found| found == *wanted))
        .map(|(_, mark)| mark.to_string())
        .collect();
    if !missing.is_empty() {
        return Some(format!(
            "AgentAPI shows {} message(s) where it showed {}, without {}",
            after.len(),
            before.len(),
            missing.join(", ")
        ));
    }
    (users(after) < users(before)).then(|| {
        format!(
            "AgentAPI shows {} of the user's message(s) where it showed {}",
            users(after),
            users(before)
        )
    })
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    fn shown(after: Vec<Message>) -> Judgement {
        let before = vec![prompt(), answered(0, 0)];
        let history = history()
            .task_done()
            .shown(Moment::Before(1), before)
            .restart()
            .shown(Moment::Settled(1), after);
        judge(&history.done()).judgement
    }

    #[test]
    fn what_was_shown_must_be_shown_again() {
        let all = vec![prompt(), answered(0, 0)];
        assert_eq!(shown(all), Judgement::Pass);
        let more = vec![prompt(), answered(0, 0), told(Role::Assistant, vec![])];
        assert_eq!(shown(more), Judgement::Pass);
        assert_eq!(shown(vec![]), Judgement::Fail);
        let turned = vec![answered(0, 0), prompt()];
        assert_eq!(shown(turned), Judgement::Fail);
        assert_eq!(shown(vec![answered(0, 0)]), Judgement::Fail);
    }

    #[test]
    fn without_a_look_it_is_inconclusive() {
        let history = history().task_done().restart().done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
