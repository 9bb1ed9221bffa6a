//! What is claimed of an agent, and how far it turned out to be so.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a session comes back after a restart. Ordered from nothing to all.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Neither the agent nor its module resumes.
    None,
    /// The agent alone resumes, its module does not.
    Planned,
    /// The session goes on with a loss, or only with a setting that is not the module's default.
    Partial,
    /// With the module's defaults the session goes on, and the task is not sent again.
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "None",
            Self::Planned => "Planned",
            Self::Partial => "Partial",
            Self::Full => "Full",
        })
    }
}

/// What an agent's row of the compatibility page claims.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The level of support; none for an agent that is not on the page.
    #[serde(default)]
    pub support: Option<Level>,
    /// Where its sessions lie, as globs below the home: all that has to persist.
    pub paths: Vec<String>,
    /// The storage it needs at least, in MB of 10^6 bytes.
    #[serde(default)]
    pub storage_mb: Option<u64>,
    /// What the page says beside that number.
    #[serde(default)]
    pub storage_note: Option<String>,
    /// The files that hold a session's conversation, as globs below the home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Files without which its user must log in again, below the home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub login: Vec<String>,
}

impl Claim {
    /// Whether a path below the home is among those claimed.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.paths.iter().any(|claimed| {
            let claimed = claimed.trim_end_matches("**").trim_end_matches('/');
            path.strip_prefix(claimed)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_covered_whole_names_only() {
        let claim = Claim {
            paths: vec![".claude/**".to_owned(), ".history.md".to_owned()],
            ..Claim::default()
        };
        assert!(claim.covers(".claude/projects/x.jsonl"));
        assert!(claim.covers(".history.md"));
        assert!(!claim.covers(".claude.json"));
        assert!(!claim.covers("project/.history.md"));
    }
}
