//! What a module does with places that a restart treats differently.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ModuleRef;

/// What something found in a module means. Ordered from harmless to wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// What it writes may go with the workspace's life.
    Ephemeral,
    /// It keeps something in the home, which must persist.
    Persistence,
    /// It would go wrong.
    Bug,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ephemeral => "ephemeral is fine",
            Self::Persistence => "needs persistence",
            Self::Bug => "bug",
        })
    }
}

/// Something found in a module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AuditFinding {
    /// What it means.
    pub need: Need,
    /// Where, below the module; for what was seen in a run, the path in the workspace.
    pub file: String,
    /// Which line, from 1; none for what was seen in a run.
    pub line: Option<usize>,
    /// The path in question, with `~` for the home.
    pub path: String,
    /// What is done with it.
    pub what: String,
}

/// What was found in a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleAudit {
    /// The module.
    pub module: ModuleRef,
    /// How many scripts were read.
    pub scripts: usize,
    /// Everything found, the worst first.
    pub findings: Vec<AuditFinding>,
}

impl ModuleAudit {
    /// The worst of what was found.
    #[must_use]
    pub fn need(&self) -> Need {
        self.findings
            .iter()
            .map(|finding| finding.need)
            .max()
            .unwrap_or(Need::Ephemeral)
    }
}

/// A file in `/tmp` that several modules write, each with a content of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collision {
    /// The file.
    pub path: String,
    /// The modules.
    pub modules: Vec<ModuleRef>,
}

/// The audit of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Each module.
    pub modules: Vec<ModuleAudit>,
    /// Names in `/tmp` that several of them write.
    pub collisions: Vec<Collision>,
    /// Modules that could not be read, and why.
    pub unread: Vec<String>,
}

/// Whether a template's home volume survives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAudit {
    /// The volume's address in the template.
    pub address: String,
    /// What happens to it, by what is done to its workspace: `no-op`, `update`, `delete, create`.
    pub events: Vec<(String, Vec<String>)>,
    /// Whether `ignore_changes = all` is said of it.
    pub ignores_changes: bool,
}

impl VolumeAudit {
    /// Whether another workspace would have the same volume.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.events
            .iter()
            .any(|(_, actions)| actions.iter().any(|action| action == "shared"))
    }

    /// What loses the volume.
    pub fn lost_by(&self) -> impl Iterator<Item = &str> {
        self.events
            .iter()
            .filter(|(_, actions)| actions.iter().any(|action| action == "delete"))
            .map(|(event, _)| event.as_str())
    }
}
