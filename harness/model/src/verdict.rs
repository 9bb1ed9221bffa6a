//! What a check concludes, and on what it rests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cell, CheckName, ModuleRef, Stamp, Subject};

/// The four verdicts.
///
/// Ordered by weight: the worst of several decides a cell.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The check has nothing to say here.
    NotApplicable,
    /// As it should be.
    Pass,
    /// The infrastructure or the agent's set-up failed, so the behaviour was never seen.
    Inconclusive,
    /// Not as it should be; the evidence says where.
    Fail,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotApplicable => "not applicable",
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        })
    }
}

/// Where a piece of evidence stands in the run's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "in")]
pub enum Source {
    /// A request of `wire.jsonl`, by its number.
    Wire {
        /// The request's number.
        request: u64,
    },
    /// A path in a snapshot.
    Snapshot {
        /// The snapshot's name.
        name: String,
        /// The path below the home.
        path: String,
    },
    /// A step of `history.jsonl`, by its number.
    Step {
        /// The step's number.
        op: u64,
    },
    /// The history as a whole.
    History,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire { request } => write!(f, "wire.jsonl request {request}"),
            Self::Snapshot { name, path } => write!(f, "snapshots/{name}.json {path}"),
            Self::Step { op } => write!(f, "history.jsonl step {op}"),
            Self::History => f.write_str("history.jsonl"),
        }
    }
}

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Where it stands.
    pub source: Source,
    /// When it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Stamp>,
    /// What was seen.
    pub saw: String,
    /// What would have been right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// What one check concluded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Which check.
    pub check: CheckName,
    /// Its conclusion.
    pub judgement: Judgement,
    /// The conclusion in a sentence.
    pub summary: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What it counted, by name; a name ends with its unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, u64>,
}

/// Why a cell has no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// Which cell.
    pub cell: Cell,
    /// What is missing, and what would help.
    pub reason: String,
}

/// The end of a log that a cell kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogTail {
    /// The file below the cell's `logs/`.
    pub name: String,
    /// Its last lines.
    pub lines: Vec<String>,
}

/// A cell with its verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellResult {
    /// Which cell.
    pub cell: Cell,
    /// Real agent or stand-in.
    pub subject: Subject,
    /// The module measured, at the module layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<ModuleRef>,
    /// The module's variables.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub module_variables: BTreeSet<String>,
    /// The module's variables that the user set otherwise than a template would.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, serde_json::Value>,
    /// The worst verdict.
    pub judgement: Judgement,
    /// Each check's verdict.
    pub verdicts: Vec<Verdict>,
    /// Versions of what took part.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// How long the cell took, in milliseconds.
    pub millis: u64,
    /// Where its history, wire, snapshots and logs are.
    pub directory: String,
    /// The ends of the logs, where something failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogTail>,
    /// What the run's last error was, where it did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl CellResult {
    /// The worst of several verdicts; with none, inconclusive: nothing was judged.
    #[must_use]
    pub fn worst(verdicts: &[Verdict]) -> Judgement {
        verdicts
            .iter()
            .map(|verdict| verdict.judgement)
            .max()
            .unwrap_or(Judgement::Inconclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_everything() {
        assert!(Judgement::Fail > Judgement::Inconclusive);
        assert!(Judgement::Inconclusive > Judgement::Pass);
        assert!(Judgement::Pass > Judgement::NotApplicable);
    }

    #[test]
    fn nothing_judged_is_not_a_pass() {
        assert_eq!(CellResult::worst(&[]), Judgement::Inconclusive);
    }
}
