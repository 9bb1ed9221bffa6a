//! The compatibility matrix: what is claimed of each agent beside what was measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentName, CellResult, Claim, EngineKind, Level, ModuleRef, NotMeasured, Subject};

/// What a run gave, as `results.json` holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// The document's own version.
    pub format: String,
    /// Cells that were measured.
    pub results: Vec<CellResult>,
    /// Cells that could not be.
    pub not_measured: Vec<NotMeasured>,
    /// Whether the run was cut short.
    pub cancelled: bool,
}

/// One agent's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// The agent.
    pub agent: AgentName,
    /// Its name for people.
    pub title: String,
    /// Its module, with the release that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<ModuleRef>,
    /// What is claimed.
    pub claim: Claim,
    /// What was measured; `None` if nothing could be.
    pub level: Option<Level>,
    /// Whether the level is only the highest it can be: its module does not resume, and nobody saw the agent alone.
    #[serde(default)]
    pub at_most: bool,
    /// In words: how the level came about, or why there is none.
    pub because: String,
    /// Whether the agent alone resumes.
    pub native: Standing,
    /// Whether its module does.
    pub through_module: Standing,
    /// Versions of what took part.
    pub versions: BTreeMap<String, String>,
    /// Where it was measured.
    pub engines: Vec<EngineKind>,
    /// What it keeps on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// What the page notes of it.
    pub notes: Vec<NoteFinding>,
    /// What is claimed otherwise than it was measured.
    pub differences: Vec<Difference>,
}

/// What was seen at one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The session went on, and the task was not sent again.
    Resumes(Subject),
    /// It did not.
    Fails(Subject),
    /// Nobody saw it.
    Unmeasured(String),
}

/// What an agent keeps on disk after a load of turns and restarts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// In the claimed paths.
    pub inside: u64,
    /// Elsewhere in the home.
    pub outside: u64,
    /// What a turn adds.
    pub per_turn: u64,
    /// What a restart adds.
    pub per_restart: u64,
}

/// A note, and whether it was seen to be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteFinding {
    /// The note.
    pub text: String,
    /// Whether it holds; `None` if nothing showed it.
    pub holds: Option<bool>,
    /// What showed it, or why nothing did.
    pub because: String,
}

/// A claim that the measurement does not bear out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What is claimed.
    pub claimed: String,
    /// What was measured.
    pub measured: String,
    /// What was seen, and where it is recorded.
    pub evidence: Vec<String>,
    /// The command that shows it again.
    pub reproduce: String,
}
