//! Does each stop hand the conversation's end to Coder, once?
//!
//! The last ten messages, in at most 64 KiB: what a paused task shows (`coder/modules/agentapi`, `task_log_snapshot`).

use reprise_model::{Act, Class, Evidence, History, Layer, Moment, Request, Source, Step};

use crate::ground::{Finding, on_the_wire, restarted};

/// The most messages a snapshot holds.
const MESSAGES: usize = 10;

/// The most bytes: 64 KiB.
const BYTES: u64 = 64 * 1024;

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no module stands before the agent");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let broken = history
        .steps
        .iter()
        .any(|step| matches!(step.act, Act::BreakSnapshots { .. }));
    let stops: Vec<&Step> = history
        .steps
        .iter()
        .filter(|step| matches!(step.act, Act::Stop { by: None }))
        .collect();
    if stops.is_empty() {
        return Finding::not_applicable("the workspace is never asked to stop");
    }
    let mut evidence = Vec::new();
    for stop in &stops {
        let epoch = history.epoch_of(stop);
        let posted: Vec<&Request> = history
            .wire
            .iter()
            .map(|exchange| &exchange.request)
            .filter(|request| request.epoch == epoch && request.class == Class::Control)
            .collect();
        match posted.as_slice() {
            [] => evidence.push(Evidence {
                source: Source::Step { op: stop.op.0 },
                at: stop.ended,
                saw: format!("no log snapshot was posted when start {epoch} ended"),
                expected: Some("one log snapshot".to_owned()),
            }),
            [one] => evidence.extend(problem(history, one, epoch)),
            [_, again, ..] => evidence.push(on_the_wire(
                again,
                format!("{} log snapshots were posted at one stop", posted.len()),
                "one log snapshot",
            )),
        }
        let refused = history.wire.iter().find(|exchange| {
            exchange.request.class == Class::Control
                && exchange.request.epoch == epoch
                && exchange
                    .reply
                    .as_ref()
                    .is_some_and(|reply| reply.status != 204)
        });
        if let Some(exchange) = refused.filter(|_| !broken) {
            let status = exchange.reply.as_ref().map_or(0, |reply| reply.status);
            evidence.push(on_the_wire(
                &exchange.request,
                format!("the log snapshot was refused with {status}"),
                "204",
            ));
        }
    }
    match evidence.first() {
        Some(first) => Finding::fail(first.saw.clone(), evidence),
        None => Finding::pass(format!(
            "{} stop(s) posted one log snapshot each",
            stops.len()
        )),
    }
}

fn problem(history: &History, request: &Request, epoch: u32) -> Option<Evidence> {
    if let Some(problem) = &request.problem {
        return Some(on_the_wire(
            request,
            format!("the log snapshot is none: {problem}"),
            "AgentAPI's messages",
        ));
    }
    if request.bytes > BYTES || request.conversation.len() > MESSAGES {
        return Some(on_the_wire(
            request,
            format!(
                "the log snapshot holds {} messages in {} bytes",
                request.conversation.len(),
                request.bytes
            ),
            format!("at most {MESSAGES} messages and {BYTES} bytes"),
        ));
    }
    // The end of what was shown last must be what was posted.
    let shown = history.shown(Moment::Before(epoch + 1))?;
    let marks = |messages: &[reprise_model::Message]| -> Vec<_> {
        messages
            .iter()
            .flat_map(|message| message.marks.clone())
            .collect()
    };
    let last = &shown[shown.len().saturating_sub(request.conversation.len())..];
    let (posted, wanted) = (marks(&request.conversation), marks(last));
    (posted.last() != wanted.last() || (posted.is_empty() && !marks(shown).is_empty())).then(|| {
        on_the_wire(
            request,
            format!(
                "the log snapshot's {} message(s) are not the last ones shown",
                request.conversation.len()
            ),
            format!("the last {MESSAGES} of {} messages", shown.len()),
        )
    })
}

#[cfg(test)]
mod tests {
    use reprise_model::{Judgement, Message};

    use super::*;
    use crate::literal::*;

    fn posted(snapshots: Vec<Vec<Message>>) -> Finding {
        let mut history = history()
            .task_done()
            .shown(Moment::Before(1), vec![prompt(), answered(0, 0)]);
        for messages in snapshots {
            history = history.control(messages, 204);
        }
        judge(&history.restart().done())
    }

    #[test]
    fn each_stop_posts_the_last_messages_once() {
        let good = || vec![prompt(), answered(0, 0)];
        assert_eq!(posted(vec![good()]).judgement, Judgement::Pass);
        assert_eq!(posted(vec![]).judgement, Judgement::Fail);
        assert_eq!(posted(vec![good(), good()]).judgement, Judgement::Fail);
        assert_eq!(posted(vec![vec![prompt()]]).judgement, Judgement::Fail);
        assert_eq!(posted(vec![vec![prompt(); 11]]).judgement, Judgement::Fail);
    }

    #[test]
    fn without_a_restart_it_is_inconclusive() {
        let history = history().task_done().cut_off();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
