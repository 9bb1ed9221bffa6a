//! What can go wrong with an engine. All of it is infrastructure: none of it says anything about an agent.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Something this machine does not have, and what would help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} ({remedy})")]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// What would help.
    pub remedy: String,
}

/// An error with its causes, in a line.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// Why an engine could not do what it was asked for.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The engine cannot be used on this machine.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file operation failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The instance did not start.
    #[error("the workspace did not start: {0}")]
    NotStarted(String),
    /// There is no such instance, or it has ended.
    #[error("instance {0} is not running")]
    NotRunning(String),
    /// A command took too long.
    #[error("`{command}` was still running after {} s", limit.as_secs())]
    ExecTimedOut {
        /// The command.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// A command could not be run.
    #[error("cannot run `{command}` in the workspace: {reason}")]
    Exec {
        /// The command.
        command: String,
        /// Why not.
        reason: String,
    },
    /// The way to a command was cut off: what became of it is not known.
    #[error("the connection to `{command}` in the workspace broke: {reason}")]
    Broken {
        /// The command.
        command: String,
        /// What was said of it.
        reason: String,
    },
    /// The Docker daemon refused.
    #[error("docker: cannot {doing}")]
    Docker {
        /// What was asked for.
        doing: String,
        /// What it said.
        source: Box<bollard::errors::Error>,
    },
    /// The cluster refused, or did not answer.
    #[error("kubernetes: cannot {doing}")]
    Kubernetes {
        /// What was asked for.
        doing: String,
        /// What it said.
        source: Box<kube::Error>,
    },
    /// The base image could not be made.
    #[error("cannot make the base image: {0}")]
    Image(String),
}

impl EngineError {
    /// For `map_err` on a file operation.
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// For `map_err` on a call to a cluster.
    pub(crate) fn kubernetes(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Kubernetes {
            doing,
            source: Box::new(source),
        }
    }

    /// For `map_err` on a call to Docker.
    pub(crate) fn docker(doing: impl Into<String>) -> impl FnOnce(bollard::errors::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Docker {
            doing,
            source: Box::new(source),
        }
    }
}
