//! Does a module leave files in `/tmp` alone that are not its own?
//!
//! A script that writes `/tmp/main.sh` overwrites another module's file of that name, or runs it.

use reprise_model::{Evidence, FileKind, History, Layer, Moment, Snapshot, Source};

use crate::ground::{Finding, because, restarted};

/// What nobody chose a name for: logs and directories of Coder's agent, what `mktemp` drew, and marks of ours.
const DRAWN: [&str; 4] = ["coder-script-", "tmp.", ".reprise", "."];

/// The files directly below a directory such as `/tmp` whose names a script chose.
pub fn fixed_names(tmp: &Snapshot) -> impl Iterator<Item = &String> {
    tmp.manifest
        .iter()
        .filter(|(path, entry)| {
            entry.kind == FileKind::File
                && !path.contains('/')
                && !DRAWN.iter().any(|drawn| path.starts_with(drawn))
                // A process's number or a time in it makes it another one each time.
                && path.chars().filter(char::is_ascii_digit).count() < 4
        })
        .map(|(path, _)| path)
}

pub(crate) fn judge(history: &History) -> Finding {
    if history.header.cell.layer == Layer::Native {
        return Finding::not_applicable("no module's script runs");
    }
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let (Some(before), Some(after)) = (
        history.snapshot(Moment::Tmp(0)),
        history.snapshot(Moment::Tmp(1)),
    ) else {
        return Finding::inconclusive(format!("nobody looked at /tmp{}", because(history)));
    };
    let names: Vec<&String> = fixed_names(before).collect();
    let evidence: Vec<Evidence> = names
        .iter()
        .filter_map(|name| {
            let then = &before.manifest.get(*name)?.hash;
            // Back to the module's own content: somebody else's is gone.
            let overwritten = match after.manifest.get(*name) {
                None => Some("removed"),
                Some(now) if now.hash == *then => Some("overwritten"),
                Some(_) => None,
            }?;
            Some(Evidence {
                source: Source::Snapshot {
                    name: Moment::Tmp(1).to_string(),
                    path: (*name).clone(),
                },
                at: Some(after.at),
                saw: format!("/tmp/{name}, which was another module's, was {overwritten}"),
                expected: Some("files of its own, below its own directory".to_owned()),
            })
        })
        .collect();
    match evidence.first() {
        Some(first) => Finding::fail(
            format!(
                "{} of {} file(s): {}",
                evidence.len(),
                names.len(),
                first.saw
            ),
            evidence,
        ),
        None => Finding::pass(format!(
            "{} file(s) of fixed names in /tmp, none of them taken from another",
            names.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn anothers_file_must_stay() {
        let left = |content: &str| {
            let history = history()
                .task_done()
                .look(Moment::Tmp(0), home([file("main.sh", "mine")]).look())
                .restart()
                .look(Moment::Tmp(1), home([file("main.sh", content)]).look())
                .done();
            judge(&history).judgement
        };
        assert_eq!(left("mine"), Judgement::Fail);
        assert_eq!(left("another's"), Judgement::Pass);
        let unseen = history().task_done().restart().done();
        assert_eq!(judge(&unseen).judgement, Judgement::Inconclusive);
    }

    #[test]
    fn drawn_names_are_nobodys() {
        let tmp = home([
            file("main.sh", "a"),
            file("tmp.Xy12Za", "a"),
            file("coder-script-0.log", "a"),
            file("agent-173248.sock", "a"),
            file("dir/main.sh", "a"),
        ])
        .look();
        assert_eq!(fixed_names(&tmp).collect::<Vec<_>>(), ["main.sh"]);
    }
}
