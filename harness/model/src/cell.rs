//! One cell of the matrix: which agent, at which layer, on which engine, through which scenario.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{AgentName, ScenarioName};

/// Where a workspace runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Namespaces on this machine.
    Sandbox,
    /// Containers of a Docker daemon.
    Docker,
    /// Pods of a Kubernetes cluster.
    Kubernetes,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sandbox => "sandbox",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
        })
    }
}

/// How the agent is started.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The agent alone, by its own documented commands: does it resume?
    Native,
    /// The released module's scripts start it: does the module wire that resume?
    Module,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Native => "native",
            Self::Module => "module",
        })
    }
}

/// What kind of agent a measurement rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The vendor's own released program.
    RealAgent,
    /// A program of Reprise that plays an agent.
    StandIn,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::RealAgent => "real agent",
            Self::StandIn => "stand-in",
        })
    }
}

/// A module of the registry, by namespace, name and (unless the working tree is meant) released version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ModuleRef {
    /// `coder`, `coder-labs`.
    pub namespace: String,
    /// `goose`.
    pub name: String,
    /// The released version; `None` is the working tree.
    pub version: Option<Version>,
}

/// A module reference that does not fit `namespace/name[@version]`.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "`{0}` is not a module: write NAMESPACE/NAME or NAMESPACE/NAME@VERSION, such as coder/goose@3.0.1"
)]
pub struct ModuleRefError(String);

impl FromStr for ModuleRef {
    type Err = ModuleRefError;
    fn from_str(given: &str) -> Result<Self, ModuleRefError> {
        let wrong = || ModuleRefError(given.to_owned());
        let (path, version) = match given.split_once('@') {
            Some((path, version)) => {
                let version = version.strip_prefix('v').unwrap_or(version);
                (path, Some(Version::parse(version).map_err(|_| wrong())?))
            }
            None => (given, None),
        };
        let (namespace, name) = path.split_once('/').ok_or_else(wrong)?;
        let fits = |part: &str| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        if !fits(namespace) || !fits(name) {
            return Err(wrong());
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version,
        })
    }
}

impl TryFrom<String> for ModuleRef {
    type Error = ModuleRefError;
    fn try_from(given: String) -> Result<Self, ModuleRefError> {
        given.parse()
    }
}

impl From<ModuleRef> for String {
    fn from(module: ModuleRef) -> String {
        module.to_string()
    }
}

impl fmt::Display for ModuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Where.
    pub engine: EngineKind,
    /// Who.
    pub agent: AgentName,
    /// Started how.
    pub layer: Layer,
    /// Through what.
    pub scenario: ScenarioName,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.engine, self.agent, self.layer, self.scenario
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_reference_reads_back() {
        for text in ["coder/goose@3.0.1", "coder-labs/codex"] {
            let module: ModuleRef = text.parse().expect("a well-formed reference");
            assert_eq!(module.to_string(), text);
        }
        let with_v: ModuleRef = "coder/goose@v3.0.1"
            .parse()
            .expect("a leading v is allowed");
        assert_eq!(with_v.to_string(), "coder/goose@3.0.1");
    }

    #[test]
    fn module_reference_refuses_paths_out_of_the_registry() {
        for text in [
            "goose",
            "../goose",
            "coder/../x",
            "coder/goose@latest",
            "a/b/c",
        ] {
            assert!(text.parse::<ModuleRef>().is_err(), "{text}");
        }
    }
}
