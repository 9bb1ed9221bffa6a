//! Where a workspace names one directory for modules' data, does the module keep its data there?
//!
//! `CODER_MODULE_DATA_DIR` is proposed for Coder's agent; `$HOME/.coder-modules` is the convention until it comes.

use reprise_model::{Evidence, FileKind, History, Layer, Moment, Source};

use crate::ground::{Finding, because, restarted};

/// The convention, below the home; scenarios set the variable to it.
const DIRECTORY: &str = ".coder-modules/";

/// What everybody writes, whatever the module.
const EVERYBODYS: [&str; 4] = [".bash", ".cache/", ".profile", ".reprise"];

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no module's script runs");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let (Some(new), Some(now)) = (
        history.snapshot(Moment::Found(0)),
        history.snapshot(Moment::Before(1)),
    ) else {
        return Finding::inconclusive(format!("nobody looked at the home{}", because(history)));
    };
    let written: Vec<&String> = now
        .manifest
        .iter()
        .filter(|(path, entry)| {
            entry.kind == FileKind::File
                && !new.manifest.contains_key(*path)
                && !history.header.claim.covers(path)
                && !EVERYBODYS.iter().any(|name| path.starts_with(name))
        })
        .map(|(path, _)| path)
        .collect();
    let (inside, outside): (Vec<&String>, Vec<&String>) = written
        .into_iter()
        .partition(|path| path.starts_with(DIRECTORY));
    let Some(first) = outside.first() else {
        return Finding::pass(format!("{} file(s) lie in {DIRECTORY}", inside.len()));
    };
    let evidence = outside
        .iter()
        .take(8)
        .map(|path| Evidence {
            source: Source::Snapshot {
                name: Moment::Before(1).to_string(),
                path: (*path).clone(),
            },
            at: Some(now.at),
            saw: format!("{path} lies outside the directory for modules' data"),
            expected: Some(format!("{DIRECTORY}NAMESPACE/NAME/…")),
        })
        .collect();
    Finding::fail(
        format!(
            "{} file(s) lie outside the directory for modules' data, the first is {first}",
            outside.len()
        ),
        evidence,
    )
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn a_directory_of_its_own_choosing_is_told_of() {
        let wrote = |path: &str| {
            let history = history()
                .look(Moment::Found(0), home([]).look())
                .task_done()
                .look(Moment::Before(1), home([file(path, "x")]).look())
                .restart()
                .done();
            judge(&history).judgement
        };
        assert_eq!(
            wrote(".coder-modules/reprise/reference/pid"),
            Judgement::Pass
        );
        assert_eq!(wrote(".goose-module/install.sh"), Judgement::Fail);
        let unseen = history().task_done().restart().done();
        assert_eq!(judge(&unseen).judgement, Judgement::Inconclusive);
    }
}
