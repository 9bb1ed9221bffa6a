//! What runs need and machines may lack: Terraform, Coder's provider for it, AgentAPI, the agents.
//!
//! Each is had by the first link of a chain that holds: on PATH, in the cache, the project's official release with a pinned
//! checksum, a build with the Go toolchain. [`Tried`] keeps what each link said, for `reprise doctor` and for the reason
//! that a cell could not be measured.

mod agentapi;
mod cache;
mod command;
mod download;
mod go;
mod lock;
mod npm;
mod provider;
mod pypi;
mod terraform;

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

pub use cache::Cache;
pub use command::{CommandError, run};
pub use lock::{AgentsLock, NpmPin, PypiPin};
pub use npm::newest;
pub use provider::Provider;
pub use terraform::terraform_in;

use reprise_engine::Progress;
use semver::Version;

/// A tool that was found or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its program, or for a provider the mirror it lies in.
    pub path: PathBuf,
    /// Its version, as it reports it.
    pub version: String,
    /// The link that held.
    pub from: String,
}

/// What one link of a chain said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Which link.
    pub name: &'static str,
    /// Why it did not hold.
    pub why: String,
}

/// A tool that no link could give.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Tried {
    /// The tool.
    pub what: String,
    /// What each link said, in order.
    pub links: Vec<Link>,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} could not be had: ", self.what)?;
        let links: Vec<String> = self
            .links
            .iter()
            .map(|link| format!("{}: {}", link.name, link.why))
            .collect();
        f.write_str(&links.join("; "))
    }
}

/// Finds and makes tools.
#[derive(Debug, Clone)]
pub struct Tools {
    cache: Cache,
    /// Whether links that need a network or a compiler may be tried.
    obtain: bool,
    agentapi_source: String,
}

/// Where AgentAPI's sources are, unless the user names another place.
pub const AGENTAPI_REPOSITORY: &str = "https://github.com/coder/agentapi.git";

impl Tools {
    /// Tools kept in `cache`; AgentAPI's sources come from `agentapi_source`, a git URL, bundle or directory.
    #[must_use]
    pub fn new(cache: Cache, agentapi_source: Option<String>) -> Self {
        Self {
            cache,
            obtain: true,
            agentapi_source: agentapi_source.unwrap_or_else(|| AGENTAPI_REPOSITORY.to_owned()),
        }
    }

    /// The same, but nothing is fetched or built: for `reprise doctor`.
    #[must_use]
    pub fn only_looking(&self) -> Self {
        Self {
            obtain: false,
            ..self.clone()
        }
    }

    /// Where tools are kept.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Terraform or OpenTofu.
    ///
    /// # Errors
    /// With what each link said.
    pub async fn terraform(&self, progress: Progress<'_>) -> Result<Tool, Tried> {
        terraform::find(self, progress).await
    }

    /// Coder's Terraform provider, as a filesystem mirror or from Terraform's own registry.
    ///
    /// # Errors
    /// With what each link said.
    pub async fn provider(&self, progress: Progress<'_>) -> Result<Provider, Tried> {
        provider::find(self, progress).await
    }

    /// AgentAPI, in the first of `versions` that can be had.
    ///
    /// # Errors
    /// With what each link said of each version.
    pub async fn agentapi(
        &self,
        versions: &[Version],
        progress: Progress<'_>,
    ) -> Result<Tool, Tried> {
        agentapi::find(self, versions, progress).await
    }

    /// A package of npm's registry: the directory with its files.
    ///
    /// # Errors
    /// With what each link said.
    pub async fn npm(&self, name: &str, progress: Progress<'_>) -> Result<Tool, Tried> {
        match AgentsLock::builtin().npm.get(name) {
            Some(pin) => npm::find(self, name, pin, progress).await,
            None => Err(unpinned(name)),
        }
    }

    /// The release of a package of npm's registry that came before the one that is pinned; `None` where none is pinned.
    ///
    /// # Errors
    /// With what each link said.
    pub async fn npm_before(
        &self,
        name: &str,
        progress: Progress<'_>,
    ) -> Result<Option<Tool>, Tried> {
        let pinned = AgentsLock::builtin().npm.get(name);
        match pinned.and_then(|pin| pin.earlier.as_deref()) {
            Some(pin) => npm::find(self, name, pin, progress).await.map(Some),
            None => Ok(None),
        }
    }

    /// A distribution of Python's package index: a directory for `PYTHONPATH`.
    ///
    /// # Errors
    /// With what each link said.
    pub async fn pypi(&self, name: &str, progress: Progress<'_>) -> Result<Tool, Tried> {
        match AgentsLock::builtin().pypi.get(name) {
            Some(pin) => pypi::find(self, name, pin, progress).await,
            None => Err(unpinned(name)),
        }
    }
}

fn unpinned(name: &str) -> Tried {
    let mut chain = Chain::of(name);
    chain.says("images/agents.lock", "pins no version of it");
    chain.broken()
}

/// Collects what links say until one holds.
struct Chain {
    what: String,
    links: Vec<Link>,
}

impl Chain {
    fn of(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            links: Vec::new(),
        }
    }

    fn says(&mut self, name: &'static str, why: impl ToString) {
        self.links.push(Link {
            name,
            why: why.to_string(),
        });
    }

    fn broken(self) -> Tried {
        Tried {
            what: self.what,
            links: self.links,
        }
    }
}

/// The first executable file of that name on PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}
