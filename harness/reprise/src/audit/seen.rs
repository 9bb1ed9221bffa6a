//! What modules were seen to write, from records of their runs.

use std::collections::BTreeSet;
use std::path::Path;

use reprise_check::fixed_names;
use reprise_model::{Audit, AuditFinding, FileKind, History, Moment, Need};

use crate::record::{self, RecordError};

/// Adds what recorded runs below `dir` show of the modules audited: files in the home beside the agent's own, and files of
/// fixed names in `/tmp`.
///
/// # Errors
/// If there is no record, or one cannot be read.
pub fn add_seen(audit: &mut Audit, dir: &Path) -> Result<(), RecordError> {
    for cell in record::find_cells(dir)? {
        let history = record::read(&cell)?;
        let Some(module) = &history.header.module else {
            continue;
        };
        let Some(known) = audit.modules.iter_mut().find(|known| {
            known.module.namespace == module.namespace && known.module.name == module.name
        }) else {
            continue;
        };
        let told: BTreeSet<String> = known
            .findings
            .iter()
            .map(|finding| finding.path.clone())
            .collect();
        known.findings.extend(
            seen(&history)
                .into_iter()
                .filter(|finding| !told.contains(&finding.path)),
        );
        known
            .findings
            .sort_by(|one, other| other.need.cmp(&one.need).then_with(|| one.cmp(other)));
        known.findings.dedup();
    }
    Ok(())
}

fn seen(history: &History) -> Vec<AuditFinding> {
    let mut findings = Vec::new();
    let mut add = |need, path: String, what: &str| {
        let finding = AuditFinding {
            need,
            file: "seen in a run".to_owned(),
            line: None,
            path,
            what: what.to_owned(),
        };
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    };
    if let (Some(new), Some(now)) = (
        history.snapshot(Moment::Found(0)),
        history.snapshot(Moment::Before(1)),
    ) {
        let written = now.manifest.iter().filter(|(path, entry)| {
            entry.kind == FileKind::File
                && !new.manifest.contains_key(*path)
                && !history.header.claim.covers(path)
                && !path.starts_with(".reprise")
        });
        for (path, _) in written {
            let dir = path.split('/').next().unwrap_or_default();
            add(
                Need::Persistence,
                format!("~/{dir}"),
                "was written in a run",
            );
        }
    }
    if let Some(tmp) = history.snapshot(Moment::Tmp(0)) {
        for name in fixed_names(tmp) {
            let what = "was written in a run by a fixed name that any other module may write";
            add(Need::Bug, format!("/tmp/{name}"), what);
        }
    }
    findings
}
