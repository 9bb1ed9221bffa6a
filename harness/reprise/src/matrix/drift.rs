//! What moved since verdicts were last accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use reprise_model::{CellResult, Judgement, Results, Subject};
use serde::{Deserialize, Serialize};

/// A cell's accepted verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// Real agent or stand-in.
    pub subject: Subject,
    /// The cell's verdict.
    pub verdict: Judgement,
    /// The checks that fail.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fails: BTreeSet<String>,
}

/// Accepted verdicts by cell.
pub type Baseline = BTreeMap<String, Accepted>;

impl From<&CellResult> for Accepted {
    fn from(result: &CellResult) -> Self {
        Self {
            subject: result.subject,
            verdict: result.judgement,
            fails: result
                .verdicts
                .iter()
                .filter(|verdict| verdict.judgement == Judgement::Fail)
                .map(|verdict| verdict.check.to_string())
                .collect(),
        }
    }
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.verdict, self.subject)?;
        if !self.fails.is_empty() {
            let fails: Vec<&str> = self.fails.iter().map(String::as_str).collect();
            write!(f, ": {}", fails.join(", "))?;
        }
        Ok(())
    }
}

/// What runs measured, as it may be accepted. A cell that ran more than once counts as it ended last; one that nobody could
/// judge is nothing to accept.
#[must_use]
pub fn baseline(runs: &[Results]) -> Baseline {
    runs.iter()
        .flat_map(|run| &run.results)
        .filter(|result| result.judgement != Judgement::Inconclusive)
        .map(|result| (result.cell.to_string(), Accepted::from(result)))
        .collect()
}

/// A verdict that is not the accepted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The cell.
    pub cell: String,
    /// What was accepted; `None` for a cell that is new.
    pub was: Option<Accepted>,
    /// What it is now; `None` for one that was not measured this time, with the reason.
    pub now: Result<Accepted, String>,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.cell)?;
        match &self.was {
            Some(was) => write!(f, "was {was}, ")?,
            None => f.write_str("is new, ")?,
        }
        match &self.now {
            Ok(now) => write!(f, "is {now}"),
            Err(why) => write!(f, "was not measured: {why}"),
        }
    }
}

/// Everything that moved among the cells that these runs were asked for; what they were not asked for is not missed, so
/// that a shard can be held against the whole.
#[must_use]
pub fn drift(accepted: &Baseline, runs: &[Results]) -> Vec<Moved> {
    let mut now: BTreeMap<String, Result<Accepted, String>> = BTreeMap::new();
    for run in runs {
        for missing in &run.not_measured {
            now.entry(missing.cell.to_string())
                .or_insert_with(|| Err(missing.reason.clone()));
        }
        for result in &run.results {
            now.insert(result.cell.to_string(), Ok(Accepted::from(result)));
        }
    }
    now.into_iter()
        .filter_map(|(cell, now)| {
            let was = accepted.get(&cell).cloned();
            let same = match (&was, &now) {
                (Some(was), Ok(now)) => was == now,
                // What was never judged is not missed.
                (None, Err(_)) => true,
                (None, Ok(now)) => now.verdict == Judgement::Inconclusive,
                _ => false,
            };
            (!same).then_some(Moved { cell, was, now })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(text: &str) -> Results {
        serde_json::from_str(text).expect("results of a run")
    }

    fn run(judgement: &str, fails: &[&str]) -> Results {
        let verdicts: Vec<String> = fails
            .iter()
            .map(|check| format!(r#"{{"check":"{check}","judgement":"fail","summary":"s"}}"#))
            .collect();
        results(&format!(
            r#"{{"format":"1.1","cancelled":false,"not_measured":[],"results":[{{
                "cell":{{"engine":"sandbox","agent":"a","layer":"native","scenario":"s"}},
                "subject":"real-agent","judgement":"{judgement}","verdicts":[{}],"millis":1,"directory":"d"}}]}}"#,
            verdicts.join(",")
        ))
    }

    #[test]
    fn what_is_as_accepted_does_not_move() {
        let first = [run("fail", &["x"])];
        let accepted = baseline(&first);
        assert_eq!(drift(&accepted, &first), []);
        assert_eq!(drift(&accepted, &[]), []);
    }

    #[test]
    fn another_verdict_another_check_and_a_new_cell_move() {
        let accepted = baseline(&[run("fail", &["x"])]);
        for now in [
            run("pass", &[]),
            run("fail", &["y"]),
            run("inconclusive", &[]),
        ] {
            let moved = drift(&accepted, std::slice::from_ref(&now));
            assert_eq!(moved.len(), 1, "{now:?}");
            assert!(
                moved[0]
                    .to_string()
                    .starts_with("sandbox/a/native/s: was fail")
            );
        }
        let moved = drift(&Baseline::new(), &[run("pass", &[])]);
        assert!(moved[0].to_string().contains("is new"));
    }

    #[test]
    fn nothing_inconclusive_is_accepted() {
        assert_eq!(baseline(&[run("inconclusive", &[])]), Baseline::new());
    }

    #[test]
    fn what_can_no_longer_be_measured_moves() {
        let accepted = baseline(&[run("pass", &[])]);
        let gone = results(
            r#"{"format":"1.1","cancelled":false,"results":[],"not_measured":[{"reason":"no go",
                "cell":{"engine":"sandbox","agent":"a","layer":"native","scenario":"s"}}]}"#,
        );
        let moved = drift(&accepted, &[gone]);
        assert!(moved[0].to_string().ends_with("was not measured: no go"));
    }
}
