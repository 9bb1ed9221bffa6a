//! The ways in which a workspace is restarted, and what befalls its home between its end and its next start.

use reprise_model::DamageKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a workspace is ended before it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartKind {
    /// SIGTERM, stop scripts, then the end.
    Stop,
    /// SIGKILL.
    Kill,
    /// As `stop`; then only the paths come back that are claimed to hold the agent's session.
    ClaimedPathsOnly,
    /// The node is drained: an eviction that respects disruption budgets. Where there are no nodes, as `stop`.
    Drain,
    /// As `stop`, with a grace that ends before the stop scripts do.
    ShortGrace,
    /// As `stop`; then an instance of the same name comes back on the volume, as in a StatefulSet.
    Reattach,
    /// The container is killed, and started again in the same pod. Where nothing does that, as `kill`.
    KillContainer,
    /// The workspace takes more memory than it may have, and the kernel kills it. Where there is no limit, as `kill`.
    OutOfMemory,
    /// As `stop`; then the session's files are gone.
    SessionGone,
    /// As `stop`; then the session's files are empty.
    SessionEmpty,
    /// As `stop`; then the session's files have lost their second half.
    SessionTruncated,
    /// As `stop`; then the session's files are overwritten with noise.
    SessionCorrupt,
    /// As `stop`; then the session's files are forty days old.
    SessionOld,
    /// As `stop`; then every file the module left in `/tmp` is somebody else's, by the same name.
    TmpTaken,
    /// As `kill`; then the file that holds AgentAPI's process id names a process that is another's.
    StalePid,
    /// As `stop`; then AgentAPI's saved conversation is no JSON.
    StateCorrupt,
    /// As `stop`; then AgentAPI's saved conversation is of a format that is not known yet.
    StateNewer,
    /// Another user comes to own the home; then as `stop`.
    ForeignHome,
    /// The node loses power: what had not reached the disk is gone.
    PowerLoss,
    /// As `stop`; then the workspace has another name, and its owner, too.
    Renamed,
    /// As `stop`, and the next step follows before the agent is at rest.
    AtOnce,
}

/// A file of AgentAPI's whose place a profile may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentapiFile {
    /// Where it keeps the conversation.
    State,
    /// Where it keeps its process id.
    Pid,
}

impl RestartKind {
    /// What befalls the session's files.
    #[must_use]
    pub fn damage(self) -> Option<DamageKind> {
        match self {
            Self::SessionGone => Some(DamageKind::Gone),
            Self::SessionEmpty => Some(DamageKind::Empty),
            Self::SessionTruncated => Some(DamageKind::Truncated),
            Self::SessionCorrupt => Some(DamageKind::Corrupt),
            Self::SessionOld => Some(DamageKind::Old),
            _ => None,
        }
    }

    /// Which file of AgentAPI's is overwritten, and with what.
    #[must_use]
    pub fn overwritten(self) -> Option<(AgentapiFile, &'static str)> {
        match self {
            // PID 1 is always somebody else.
            Self::StalePid => Some((AgentapiFile::Pid, "1\n")),
            Self::StateCorrupt => Some((AgentapiFile::State, "{\"version\": 1, \"mess")),
            Self::StateNewer => {
                Some((AgentapiFile::State, "{\"version\": 99, \"messages\": []}\n"))
            }
            _ => None,
        }
    }
}
