//! Does the module tell AgentAPI which agent it runs?
//!
//! AgentAPI reads an agent's screen by its type; told none, it takes it for one it does not know.

use reprise_model::{Evidence, History, Layer, Observation, Source};

use crate::ground::{Finding, because, was_restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no AgentAPI stands before the agent");
    }
    if let Err(finding) = was_restarted(history) {
        return finding;
    }
    let servers: Vec<_> = history
        .observations
        .iter()
        .filter_map(|(at, seen)| match seen {
            Observation::Processes { lines, .. } => Some(lines.iter().map(move |line| (at, line))),
            _ => None,
        })
        .flatten()
        .filter(|(_, line)| line.contains("agentapi server"))
        .collect();
    let Some((at, line)) = servers.first() else {
        return Finding::inconclusive(format!("nobody saw AgentAPI run{}", because(history)));
    };
    // What stands behind `--` is the agent's.
    let own = line.split(" -- ").next().unwrap_or_default();
    let told = own
        .split(' ')
        .any(|word| word == "--type" || word == "-t" || word.starts_with("--type="));
    if told {
        return Finding::pass(format!("AgentAPI was started so: {own}"));
    }
    let evidence = Evidence {
        source: Source::History,
        at: Some(**at),
        saw: format!("AgentAPI was started so: {own}"),
        expected: Some("--type and the agent's name".to_owned()),
    };
    Finding::fail("AgentAPI is not told which agent it runs", vec![evidence])
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn the_type_must_be_agentapis_own_word() {
        let ran = |line: &str| {
            let history = history()
                .task_done()
                .observe(Observation::Processes {
                    epoch: 0,
                    lines: vec!["bash".to_owned(), line.to_owned()],
                })
                .restart()
                .done();
            judge(&history).judgement
        };
        assert_eq!(
            ran("agentapi server --type goose -- goose"),
            Judgement::Pass
        );
        assert_eq!(
            ran("agentapi server --type=goose -- goose"),
            Judgement::Pass
        );
        assert_eq!(ran("agentapi server -- bash --type goose"), Judgement::Fail);
        assert_eq!(ran("nothing"), Judgement::Inconclusive);
    }
}
