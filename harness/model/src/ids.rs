//! Ids and names as types, so that a workspace is never looked up by a run's id.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// A name that does not fit its form.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "`{given}` is not a {kind}: lower-case letters, digits, `-` and `_`, at most 64, starting with a letter"
)]
pub struct NameError {
    /// What was typed.
    pub given: String,
    /// What it was taken for.
    pub kind: &'static str,
}

fn check_name(given: &str, kind: &'static str) -> Result<String, NameError> {
    let starts = given.starts_with(|c: char| c.is_ascii_lowercase());
    let fits = given
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if starts && fits && given.len() <= 64 {
        Ok(given.to_owned())
    } else {
        Err(NameError {
            given: given.to_owned(),
            kind,
        })
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String", extend("pattern" = "^[a-z][a-z0-9_-]{0,63}$"))]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(given: &str) -> Result<Self, NameError> {
                check_name(given, $kind).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(given: String) -> Result<Self, NameError> {
                given.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name_type!(
    /// The name of an agent's profile: `goose`, `claude-code`.
    AgentName,
    "agent name"
);
name_type!(
    /// The name of a scenario: `warm_restart`.
    ScenarioName,
    "scenario name"
);
name_type!(
    /// The name of a check: `session_continues`.
    CheckName,
    "check name"
);

macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Draws a new id.
            #[must_use]
            pub fn draw() -> Self {
                Self(Uuid::new_v4())
            }

            /// The id as a UUID.
            #[must_use]
            pub fn uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(given: &str) -> Result<Self, uuid::Error> {
                given.parse().map(Self)
            }
        }
    };
}

uuid_type!(
    /// One invocation of `reprise run`.
    RunId
);
uuid_type!(
    /// A workspace: what its volume is keyed by, never its name.
    WorkspaceId
);

/// One life of a workspace: a container, a Pod, a sandbox. New at every start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub String);

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
