//! What the runner does to a workspace: each act is written down before it is done.

use std::fmt;

use schemars::JsonSchema;
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
    /// Have the model answer the agent's next turns at length.
    LengthenAnswers {
        /// How many turns.
        turns: usize,
    },
    /// Have the model hold the agent's next turn at this point, until the workspace ends.
    HoldModel {
        /// Where.
        at: HoldPoint,
    },
    /// Wait until the model holds the turn that the task led to.
    BeginTask,
    /// Send a follow-up and wait until the model holds the turn it led to.
    BeginFollowUp {
        /// Which, from 1.
        turn: u32,
    },
    /// Open a session of the user's own beside the task's, in the same directory.
    OpenOtherSession,
    /// Have log snapshots go wrong from now on.
    BreakSnapshots {
        /// How.
        by: SnapshotFault,
    },
    /// Send a follow-up that may fail, and wait for its answer.
    TryFollowUp {
        /// Which, from 1.
        turn: u32,
    },
    /// Have AgentAPI take no signal and answer nobody any more.
    FreezeAgentapi,
    /// Look for nonces in the home's files.
    SearchHome,
    /// Make the home another user's.
    GiveHomeAway,
    /// Write to the home until its volume is full.
    FillDisk,
    /// Remove what filled it.
    FreeDisk,
    /// Delete the workspace.
    Delete,
}

/// Where in a turn the model stops answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldPoint {
    /// It has the request and says nothing.
    Request,
    /// Half of its reply is out.
    Reply,
    /// It asked for a command, and the command does not end.
    ToolCall,
}

impl fmt::Display for HoldPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "before it replies",
            Self::Reply => "in the middle of its reply",
            Self::ToolCall => "in a tool call",
        })
    }
}

/// How the control plane treats a task's log snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotFault {
    /// It breaks the connection off.
    Down,
    /// It answers after twenty seconds.
    Slow,
    /// 401: the agent's token is not known.
    Unauthorized,
    /// 404: a server that knows no log snapshots.
    Unknown,
    /// 500.
    ServerError,
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "the connection breaks off",
            Self::Slow => "the answer is late",
            Self::Unauthorized => "401",
            Self::Unknown => "404",
            Self::ServerError => "500",
        })
    }
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
    /// Its node lost power: what had not reached the disk is gone.
    PowerLoss,
    /// It was cut off while it started.
    CutOff,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drain => "its node is drained",
            Self::ShortGrace => "its grace is too short",
            Self::ContainerKilled => "its container dies",
            Self::OutOfMemory => "it is out of memory",
            Self::PowerLoss => "its node loses power",
            Self::CutOff => "it is cut off while it starts",
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
            Self::LengthenAnswers { turns } => {
                write!(f, "have the model give {turns} long answer(s)")
            }
            Self::HoldModel { at } => write!(f, "have the model stop {at}"),
            Self::BeginTask => f.write_str("wait until the task is begun"),
            Self::BeginFollowUp { turn } => write!(f, "begin follow-up {turn}"),
            Self::OpenOtherSession => f.write_str("open another session of the user's"),
            Self::BreakSnapshots { by } => write!(f, "have log snapshots go wrong: {by}"),
            Self::TryFollowUp { turn } => write!(f, "try follow-up {turn}"),
            Self::FreezeAgentapi => f.write_str("freeze AgentAPI"),
            Self::SearchHome => f.write_str("search the home"),
            Self::GiveHomeAway => f.write_str("make the home another user's"),
            Self::FillDisk => f.write_str("fill the disk"),
            Self::FreeDisk => f.write_str("free the disk"),
            Self::Delete => f.write_str("delete the workspace"),
        }
    }
}
