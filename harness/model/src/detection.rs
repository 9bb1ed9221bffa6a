//! Whether the checks notice what they are there for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Cell, CellResult, CheckName, Judgement};

/// A cell whose agent, module or workspace did one thing wrong that was known before, and what noticed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// The fault's name.
    pub fault: String,
    /// What it is, in a sentence.
    pub is: String,
    /// Where it was seeded.
    pub cell: Cell,
    /// The checks that must notice it; none for what is no fault.
    pub caught_by: BTreeSet<CheckName>,
    /// The checks that failed.
    pub fired: BTreeSet<CheckName>,
    /// Why nothing can be said, if nothing can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Where it is recorded.
    pub directory: String,
}

impl Detection {
    /// Whether it was noticed by the checks that must notice it, and by no other.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.trouble.is_none() && self.caught_by == self.fired
    }
}

/// The checks of a result that failed, or why that cannot be said.
///
/// # Errors
/// With what could not be judged.
pub fn fired(result: &CellResult) -> Result<BTreeSet<CheckName>, String> {
    if let Some(verdict) = result
        .verdicts
        .iter()
        .find(|verdict| verdict.judgement == Judgement::Inconclusive)
    {
        return Err(format!("{}: {}", verdict.check, verdict.summary));
    }
    if result.verdicts.is_empty() {
        let trouble = result.trouble.clone();
        return Err(trouble.unwrap_or_else(|| "nothing was judged".to_owned()));
    }
    Ok(result
        .verdicts
        .iter()
        .filter(|verdict| verdict.judgement == Judgement::Fail)
        .map(|verdict| verdict.check.clone())
        .collect())
}

/// What a whole verification gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Each fault, in the order in which they are listed.
    pub faults: Vec<Detection>,
    /// How many healthy cells were measured.
    pub healthy: usize,
    /// The healthy cells in which a check fired, or that could not be judged.
    pub alarms: Vec<Detection>,
    /// What could not be measured, and why.
    pub not_measured: Vec<String>,
}

impl Verification {
    /// Whether every fault was noticed as it must be, and nothing else was.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.alarms.is_empty()
            && self.not_measured.is_empty()
            && self.faults.iter().all(Detection::is_right)
    }
}
