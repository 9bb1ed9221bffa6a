//! What AgentAPI had saved once: is it shown for good?
//!
//! A save that fails, on a full disk for one, must not take with it what an earlier one had saved.

use reprise_model::{Evidence, History, Layer, Mark, Message, Moment, Role, Source};

use crate::ground::{Finding, Restart, because, restart, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no AgentAPI stands before the agent");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let mut epochs: Vec<u32> = history.restarts().map(|(epoch, _)| epoch).collect();
    epochs.dedup();
    if let Some(Restart::Unseen(why)) = epochs.last().map(|epoch| restart(history, *epoch)) {
        return Finding::inconclusive(why);
    }
    let looks: Vec<(u32, &[Message])> = epochs
        .iter()
        .filter_map(|epoch| Some((*epoch, history.shown(Moment::Settled(*epoch))?)))
        .collect();
    if looks.len() < 2 {
        return Finding::inconclusive(format!(
            "what AgentAPI shows was not seen after two restarts{}",
            because(history)
        ));
    }
    let said = |messages: &[Message]| -> Vec<(Role, Mark)> {
        messages
            .iter()
            .flat_map(|message| message.marks.iter().map(|mark| (message.role, *mark)))
            .collect()
    };
    let fail = |saw: String| {
        let evidence = Evidence {
            source: Source::History,
            at: None,
            saw: saw.clone(),
            expected: Some("what was saved before, at least".to_owned()),
        };
        Finding::fail(saw, vec![evidence])
    };
    let (first, shown) = looks[0];
    if said(shown).is_empty() {
        return fail(format!(
            "after restart {first} AgentAPI shows nothing of what was said: it was never saved"
        ));
    }
    let mut kept = 0;
    for pair in looks.windows(2) {
        let [(_, earlier), (epoch, later)] = pair else {
            continue;
        };
        let later = said(later);
        let lost: Vec<String> = said(earlier)
            .into_iter()
            .filter(|word| !later.contains(word))
            .map(|(_, mark)| mark.to_string())
            .collect();
        if !lost.is_empty() {
            return fail(format!(
                "after restart {epoch} AgentAPI no longer shows {}, which it had saved before",
                lost.join(", ")
            ));
        }
        kept = later.len();
    }
    Finding::pass(format!(
        "what was saved is still shown ({kept} of our words)"
    ))
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn what_was_saved_stays() {
        let after = |messages: Vec<Message>| {
            let history = history()
                .task_done()
                .restart()
                .shown(Moment::Settled(1), vec![prompt(), answered(0, 0)])
                .restart()
                .shown(Moment::Settled(2), messages)
                .done();
            judge(&history).judgement
        };
        assert_eq!(after(vec![prompt(), answered(0, 0)]), Judgement::Pass);
        assert_eq!(after(vec![]), Judgement::Fail);
        let never = history()
            .task_done()
            .restart()
            .shown(Moment::Settled(1), vec![])
            .restart()
            .shown(Moment::Settled(2), vec![])
            .done();
        assert_eq!(judge(&never).judgement, Judgement::Fail);
        let once = history().task_done().restart().done();
        assert_eq!(judge(&once).judgement, Judgement::Inconclusive);
    }
}
