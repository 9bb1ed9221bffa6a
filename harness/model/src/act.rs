//! What the runner does to a workspace: each act is written down before it is done.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the runner does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// Make the workspace's volume.
    CreateWorkspace,
    /// Render the module for a transition.
    Render {
        /// `start` or `stop`.
        transition: String,
    },
    /// Start the workspace; at the module layer this runs the module's scripts.
    Start {
        /// Which start; 0 is the first.
        epoch: u32,
    },
    /// Wait until the agent is ready and at rest.
    Settle {
        /// Which start.
        epoch: u32,
    },
    /// Give the agent its task, or wait until it has answered the one the module gave it.
    Task,
    /// Look at the home.
    Probe {
        /// The snapshot's name.
        snapshot: String,
    },
    /// Leave a mark in the home, beside it, and as a process.
    PlantMarks {
        /// Which start.
        epoch: u32,
    },
    /// Look for those marks.
    FindMarks {
        /// Which start.
        epoch: u32,
    },
    /// Ask the workspace to stop, with a grace period.
    Stop {
        /// On whose account, if not the user's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Cause>,
    },
    /// Kill the workspace.
    Kill {
        /// On whose account, if not the user's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Cause>,
    },
    /// End what runs the workspace on its node, and start that again.
    RestartNodeAgent,
    /// Make the workspace's volume larger.
    GrowVolume,
    /// Send a follow-up and wait for its answer.
    FollowUp {
        /// Which, from 1.
        turn: u32,
    },
    /// Have the model fail the agent's next turns.
    BreakModel {
        /// How many.
        turns: usize,
    },
    /// Delete the workspace.
    Delete,
}

/// What ends a workspace that its user did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its node is drained.
    Drain,
    /// Less time than its stop scripts take.
    ShortGrace,
    /// Its container is killed, and started again in its place.
    ContainerKilled,
    /// It took more memory than it may have.
    OutOfMemory,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drain => "its node is drained",
            Self::ShortGrace => "its grace is too short",
            Self::ContainerKilled => "its container dies",
            Self::OutOfMemory => "it is out of memory",
        })
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateWorkspace => f.write_str("create the workspace"),
            Self::Render { transition } => write!(f, "render the module for {transition}"),
            Self::Start { epoch: 0 } => f.write_str("start the workspace"),
            Self::Start { epoch } => write!(f, "start the workspace again ({epoch})"),
            Self::Settle { .. } => f.write_str("wait until the agent is at rest"),
            Self::Task => f.write_str("give the task"),
            Self::Probe { snapshot } => write!(f, "look at the home ({snapshot})"),
            Self::PlantMarks { .. } => f.write_str("leave marks"),
            Self::FindMarks { .. } => f.write_str("look for the marks"),
            Self::Stop { by: None } => f.write_str("stop the workspace"),
            Self::Stop { by: Some(cause) } => write!(f, "stop the workspace: {cause}"),
            Self::Kill { by: None } => f.write_str("kill the workspace"),
            Self::Kill { by: Some(cause) } => write!(f, "kill the workspace: {cause}"),
            Self::RestartNodeAgent => f.write_str("start again what runs the workspace"),
            Self::GrowVolume => f.write_str("make the volume larger"),
            Self::FollowUp { turn } => write!(f, "send follow-up {turn}"),
            Self::BreakModel { turns } => write!(f, "have the model fail {turns} turn(s)"),
            Self::Delete => f.write_str("delete the workspace"),
        }
    }
}
