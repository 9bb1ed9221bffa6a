//! Is everything outside the home new after a restart: root, /tmp, processes, script data directories?

use std::collections::BTreeMap;

use reprise_model::{AgentEvent, Evidence, History, InstanceId, Observation, Source, Stamp};

use crate::ground::{Finding, because, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let mut evidence = Vec::new();
    let mut unseen = None;
    let instances: BTreeMap<u32, (&InstanceId, Stamp)> = history
        .observations
        .iter()
        .filter_map(|(at, seen)| match seen {
            Observation::Instance { epoch, id } => Some((*epoch, (id, *at))),
            _ => None,
        })
        .collect();
    for (epoch, _) in history.restarts() {
        let found = history
            .observations
            .iter()
            .find_map(|(at, seen)| match seen {
                Observation::Marks {
                    planted,
                    outside,
                    process,
                    ..
                } if *planted + 1 == epoch => Some((*at, outside, *process)),
                _ => None,
            });
        let Some((at, outside, process)) = found else {
            unseen = unseen.or(Some(format!(
                "nobody looked for the marks after restart {epoch}{}",
                because(history)
            )));
            continue;
        };
        let mut seen = |at: Stamp, saw: String, expected: &str| {
            evidence.push(Evidence {
                source: Source::History,
                at: Some(at),
                saw,
                expected: Some(expected.to_owned()),
            });
        };
        for path in outside {
            seen(
                at,
                format!("{path} survived restart {epoch}"),
                "a new root and a new /tmp",
            );
        }
        if process {
            seen(
                at,
                format!("a process survived restart {epoch}"),
                "no process of the life before",
            );
        }
        match (instances.get(&(epoch - 1)), instances.get(&epoch)) {
            (Some((before, _)), Some((after, at))) if before == after => seen(
                *at,
                format!("instance {after} is the one from before restart {epoch}"),
                "a new instance on the old volume",
            ),
            (Some(_), Some(_)) => {}
            _ => {
                unseen = unseen.or(Some(format!(
                    "an instance around restart {epoch} is not recorded"
                )))
            }
        }
        let before = data_dirs(history, epoch - 1);
        for (dir, at) in data_dirs(history, epoch) {
            if before.contains_key(dir) {
                seen(
                    at,
                    format!("script data directory {dir} was handed out again"),
                    "a new directory for each script at each start",
                );
            }
        }
    }
    if !evidence.is_empty() {
        return Finding::fail(evidence[0].saw.clone(), evidence);
    }
    match unseen {
        Some(why) => Finding::inconclusive(why),
        None => Finding::pass("nothing outside the home outlived a restart"),
    }
}

fn data_dirs(history: &History, epoch: u32) -> BTreeMap<&str, Stamp> {
    history
        .agent_events(epoch)
        .filter_map(|(at, event)| match event {
            AgentEvent::ScriptStarted { data_dir, .. } => Some((data_dir.as_str(), at)),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::history;

    #[test]
    fn passes_a_new_world() {
        let history = history()
            .task_done()
            .instance("one")
            .restart()
            .instance("two")
            .marks(true, &[], false)
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_a_surviving_file_process_or_instance() {
        for (outside, process, second) in [
            (&["/tmp/mark"][..], false, "two"),
            (&[][..], true, "two"),
            (&[][..], false, "one"),
        ] {
            let history = history()
                .task_done()
                .instance("one")
                .restart()
                .instance(second)
                .marks(true, outside, process)
                .done();
            assert_eq!(judge(&history).judgement, Judgement::Fail);
        }
    }

    #[test]
    fn fails_a_data_directory_handed_out_again() {
        let history = history()
            .task_done()
            .instance("one")
            .script_in("/tmp/coder-script-data/a")
            .restart()
            .instance("two")
            .script_in("/tmp/coder-script-data/a")
            .marks(true, &[], false)
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Fail);
    }

    #[test]
    fn cannot_judge_where_nobody_looked() {
        let history = history().task_done().restart().done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
