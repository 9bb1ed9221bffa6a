//! A cell that shall be measured, and why it cannot be.

use reprise_model::{Layer, Subject};

use super::plan::Chosen;
use crate::scenario::{AgentProfile, AgentapiFile, ModuleProfile, Scenario};

/// One cell that shall be measured.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which agent.
    pub profile: AgentProfile,
    /// Whether it is played.
    pub subject: Subject,
    /// At which layer.
    pub layer: Layer,
    /// Through what.
    pub scenario: Scenario,
    /// A directory of its own below the cell's, where a cell is measured more than once.
    pub part: Option<String>,
}

impl Wanted {
    /// The size in bytes of the disk that the home is to be on, if it is to be on one.
    pub(super) fn disk(&self) -> Option<u64> {
        /// Enough for what an agent writes in a scenario.
        const USUAL_MB: u64 = 1000;
        const MB: u64 = 1_000_000;
        let with = &self.scenario.with;
        let claimed = with
            .disk_as_claimed
            .then_some(self.profile.claim.storage_mb)
            .flatten();
        self.scenario
            .wants_disk()
            .then(|| claimed.or(with.disk_mb).unwrap_or(USUAL_MB) * MB)
    }

    /// Why this cell cannot be measured as its scenario wants it, whatever the engine.
    pub(super) fn unfit(&self) -> Option<String> {
        let with = &self.scenario.with;
        let claim = &self.profile.claim;
        if with.disk_as_claimed && claim.storage_mb.is_none() {
            return Some(format!("no storage is claimed for {}", self.profile.name));
        }
        if self.scenario.damages_sessions() && claim.sessions.is_empty() {
            return Some(format!(
                "the profile of {} does not say which files hold its sessions (claim.sessions)",
                self.profile.name
            ));
        }
        if self.layer == Layer::Module
            && let Some(module) = &self.profile.module
            && let Some(what) = self.unknown_file(module)
        {
            return Some(format!(
                "the profile of {} does not say where its module keeps AgentAPI's {what}",
                self.profile.name
            ));
        }
        if with.directory.is_some()
            && self.layer == Layer::Module
            && let Some(module) = &self.profile.module
            && module.directory.is_none()
        {
            return Some(format!(
                "the module of {} takes no directory",
                self.profile.name
            ));
        }
        None
    }

    /// The variable that its scenario sets and the module does not have.
    pub(super) fn unset(&self, chosen: Option<&Chosen>) -> Option<String> {
        let chosen = chosen?;
        let mut names = self.scenario.with.settings.keys();
        let missing = names.find(|name| !chosen.variables.contains(*name))?;
        Some(format!("{} has no variable `{missing}`", chosen.module))
    }

    /// What of AgentAPI's is overwritten between two starts, and in a place that nobody names.
    fn unknown_file(&self, module: &ModuleProfile) -> Option<&'static str> {
        let mut overwritten = self
            .scenario
            .restarts()
            .filter_map(|kind| kind.overwritten());
        let (unknown, _) = overwritten.find(|(file, _)| module.agentapi_file(*file).is_none())?;
        Some(match unknown {
            AgentapiFile::State => "conversation",
            AgentapiFile::Pid => "process id",
        })
    }
}
