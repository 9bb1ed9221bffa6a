//! Does every `SQLite` database keep its -wal and -shm across a restart, or is complete without them?
//!
//! The trap: a database whose log is lost still says `integrity_check: ok`; only its rows are gone.

use reprise_model::{
    DatabaseFacts, Evidence, History, Moment, Sidecar, Snapshot, Source, TableRows,
};

use crate::ground::{Finding, because, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let mut evidence = Vec::new();
    let mut databases = 0;
    let mut unseen = None;
    for (epoch, _) in history.restarts() {
        let Some(before) = history.snapshot(Moment::Before(epoch)) else {
            unseen = unseen.or(Some(format!(
                "nobody looked at the home before restart {epoch}{}",
                because(history)
            )));
            continue;
        };
        databases = databases.max(before.databases.len());
        for moment in [Moment::Found(epoch), Moment::Settled(epoch)] {
            let Some(after) = history.snapshot(moment) else {
                unseen = unseen.or(Some(format!(
                    "there is no snapshot {moment}{}",
                    because(history)
                )));
                continue;
            };
            for (path, facts) in &before.databases {
                evidence.extend(
                    lost(path, facts, before, after)
                        .into_iter()
                        .map(|saw| Evidence {
                            source: Source::Snapshot {
                                name: moment.to_string(),
                                path: path.clone(),
                            },
                            at: Some(after.at),
                            saw,
                            expected: Some(expected(path, facts, before)),
                        }),
                );
            }
        }
    }
    if !evidence.is_empty() {
        return Finding::fail(evidence[0].saw.clone(), evidence);
    }
    match (unseen, databases) {
        (Some(why), _) => Finding::inconclusive(why),
        (None, 0) => Finding::not_applicable("the home holds no SQLite database"),
        (None, several) => Finding::pass(format!(
            "{several} SQLite database(s) came back with every row"
        )),
    }
}

/// What a database has lost between two looks, if anything.
fn lost(path: &str, facts: &DatabaseFacts, before: &Snapshot, after: &Snapshot) -> Option<String> {
    let Some(now) = after.databases.get(path) else {
        return Some(match after.manifest.get(path) {
            Some(_) => format!("{path} is no SQLite database any more"),
            None => format!("{path} is gone"),
        });
    };
    let same = Sidecar::ALL.iter().all(|sidecar| {
        let then = before.sidecar(path, *sidecar).map(|entry| &entry.hash);
        then.is_none() || then == after.sidecar(path, *sidecar).map(|entry| &entry.hash)
    }) && before.manifest.get(path).map(|entry| &entry.hash)
        == after.manifest.get(path).map(|entry| &entry.hash);
    if same {
        return None;
    }
    // A database that could not be read before can't be compared.
    if facts.with_sidecars.integrity != "ok" {
        return None;
    }
    let gone: Vec<String> = Sidecar::ALL
        .iter()
        .filter(|sidecar| {
            before.sidecar(path, **sidecar).is_some() && after.sidecar(path, **sidecar).is_none()
        })
        .map(|sidecar| format!("{path}{}", sidecar.suffix()))
        .collect();
    let gone = if gone.is_empty() {
        String::new()
    } else {
        format!("; {} is gone", gone.join(" and "))
    };
    if now.with_sidecars.integrity != "ok" {
        return Some(format!(
            "{path} is damaged: {}{gone}",
            now.with_sidecars.integrity
        ));
    }
    let short = missing_rows(&facts.with_sidecars.rows, &now.with_sidecars.rows);
    let keeps = |snapshot: &Snapshot, sidecar| {
        snapshot
            .sidecar(path, sidecar)
            .is_some_and(|entry| entry.size.0 > 0)
    };
    // SQLite removes both when the last connection ends well, and neither when it does not: somebody else did.
    let index_lost = keeps(before, Sidecar::Shm)
        && keeps(after, Sidecar::Wal)
        && after.sidecar(path, Sidecar::Shm).is_none();
    if short.is_empty() && index_lost {
        return Some(format!(
            "{path} has a log and no index of it any more{gone}"
        ));
    }
    (!short.is_empty()).then(|| format!("{path} says integrity_check: ok but lost {short}{gone}"))
}

/// The tables that have fewer rows than they had.
fn missing_rows(before: &TableRows, after: &TableRows) -> String {
    before
        .iter()
        .filter_map(|(table, rows)| match after.get(table) {
            None if *rows > 0 => Some(format!("table {table} ({rows} rows)")),
            Some(now) if now < rows => {
                Some(format!("{} of {rows} rows of table {table}", rows - now))
            }
            _ => None,
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn expected(path: &str, facts: &DatabaseFacts, before: &Snapshot) -> String {
    let sidecars: Vec<String> = Sidecar::ALL
        .iter()
        .filter_map(|sidecar| {
            before
                .sidecar(path, *sidecar)
                .map(|entry| format!("{} of {}", sidecar.suffix(), entry.size))
        })
        .collect();
    let only_in_log = missing_rows(&facts.with_sidecars.rows, &facts.alone.rows);
    let mut text = format!("{path} with every row it had");
    if !sidecars.is_empty() {
        text.push_str(&format!(
            "; before the restart it had {}",
            sidecars.join(" and ")
        ));
    }
    if !only_in_log.is_empty() {
        text.push_str(&format!("; only its log held {only_in_log}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{database, file, history, home};

    const DB: &str = "sessions.db";

    fn with_log() -> Snapshot {
        home([
            file(DB, "main"),
            file("sessions.db-wal", "log"),
            file("sessions.db-shm", "index"),
        ])
        .with(DB, database(5, 1))
        .look()
    }

    fn judged(found: Snapshot, settled: Snapshot) -> Finding {
        judge(
            &history()
                .task_done()
                .look(Moment::Before(1), with_log())
                .restart()
                .look(Moment::Found(1), found)
                .look(Moment::Settled(1), settled)
                .done(),
        )
    }

    #[test]
    fn passes_the_same_bytes() {
        assert_eq!(judged(with_log(), with_log()).judgement, Judgement::Pass);
    }

    #[test]
    fn passes_a_database_complete_without_its_log() {
        let merged = home([file(DB, "merged")]).with(DB, database(5, 5)).look();
        assert_eq!(judged(with_log(), merged).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_a_sound_database_that_lost_what_its_log_held() {
        let short = home([file(DB, "main")]).with(DB, database(1, 1)).look();
        let finding = judged(with_log(), short);
        assert_eq!(finding.judgement, Judgement::Fail);
        assert!(
            finding
                .summary
                .contains("integrity_check: ok but lost 4 of 5 rows"),
            "{}",
            finding.summary
        );
        assert!(
            finding.summary.contains("sessions.db-wal"),
            "{}",
            finding.summary
        );
    }

    #[test]
    fn fails_a_database_that_is_gone() {
        assert_eq!(
            judged(home([]).look(), home([]).look()).judgement,
            Judgement::Fail
        );
    }

    #[test]
    fn does_not_apply_where_there_is_no_database() {
        let empty = || home([file("notes.md", "x")]).look();
        let history = history()
            .task_done()
            .look(Moment::Before(1), empty())
            .restart()
            .look(Moment::Found(1), empty())
            .look(Moment::Settled(1), empty())
            .done();
        assert_eq!(judge(&history).judgement, Judgement::NotApplicable);
    }

    #[test]
    fn cannot_judge_without_a_look_before() {
        let history = history().task_done().restart().done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
