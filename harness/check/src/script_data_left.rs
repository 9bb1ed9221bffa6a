//! Does a module keep anything where each start gives it a new place, and the old one is left behind?
//!
//! `CODER_SCRIPT_DATA_DIR` holds a UUID that is new at each start: what is written there is lost to the next start, and lies
//! there for good if the base is on the home's volume.

use std::collections::BTreeMap;

use reprise_model::{AgentEvent, ByteSize, Evidence, FileKind, History, Layer, Moment, Source};

use crate::ground::{Finding, because, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no module's script runs");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let Some(last) = history.restarts().map(|(epoch, _)| epoch).max() else {
        return Finding::inconclusive("nothing was restarted");
    };
    let Some(snapshot) = history.snapshot(Moment::Settled(last)) else {
        return Finding::inconclusive(format!(
            "nobody looked at the home after restart {last}{}",
            because(history)
        ));
    };
    let root = format!("{}/", snapshot.root.trim_end_matches('/'));
    let mut dirs: Vec<&str> = Vec::new();
    for epoch in 0..last {
        dirs.extend(
            history
                .agent_events(epoch)
                .filter_map(|(_, event)| match event {
                    AgentEvent::ScriptStarted { data_dir, .. } => data_dir.strip_prefix(&root),
                    _ => None,
                }),
        );
    }
    if dirs.is_empty() {
        return Finding::not_applicable("scripts' data directories are not on the home's volume");
    }
    let mut evidence = Vec::new();
    let (mut left, mut bytes) = (0, 0);
    for dir in dirs {
        if !snapshot.manifest.contains_key(dir) {
            continue;
        }
        left += 1;
        let inside = format!("{dir}/");
        let files: Vec<(&String, u64)> = snapshot
            .manifest
            .iter()
            .filter(|(path, entry)| path.starts_with(&inside) && entry.kind == FileKind::File)
            .map(|(path, entry)| (path, entry.size.0))
            .collect();
        let size: u64 = files.iter().map(|(_, size)| size).sum();
        bytes += size;
        if let Some((path, _)) = files.first() {
            evidence.push(Evidence {
                source: Source::Snapshot {
                    name: Moment::Settled(last).to_string(),
                    path: (*path).clone(),
                },
                at: Some(snapshot.at),
                saw: format!(
                    "{} file(s), {}, lie in a script's data directory of an earlier start: {path}",
                    files.len(),
                    ByteSize(size)
                ),
                expected: Some(
                    "nothing that is kept there: CODER_SCRIPT_DATA_DIR is new at each start"
                        .to_owned(),
                ),
            });
        }
    }
    let figures = BTreeMap::from([
        ("directories_left".to_owned(), left),
        ("bytes_left".to_owned(), bytes),
    ]);
    let finding = match evidence.first() {
        Some(first) => Finding::fail(first.saw.clone(), evidence),
        None => Finding::pass(format!(
            "{left} empty directories are left of {last} earlier start(s)"
        )),
    };
    Finding { figures, ..finding }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn files_left_behind_are_told_of() {
        let after = |home: Home| {
            let history = history()
                .task_done()
                .script_in("/home/coder/.coder/coder-script-data/1")
                .restart()
                .look(Moment::Settled(1), home.look())
                .done();
            judge(&history)
        };
        let kept = after(home([
            directory(".coder/coder-script-data/1"),
            file(".coder/coder-script-data/1/cache", "bytes"),
        ]));
        assert_eq!(kept.judgement, Judgement::Fail);
        assert_eq!(kept.figures["bytes_left"], 5);
        let empty = after(home([directory(".coder/coder-script-data/1")]));
        assert_eq!(empty.judgement, Judgement::Pass);
        assert_eq!(empty.figures["directories_left"], 1);
        let unseen = history()
            .task_done()
            .script_in("/home/coder/.coder/coder-script-data/1")
            .restart()
            .done();
        assert_eq!(judge(&unseen).judgement, Judgement::Inconclusive);
    }
}
