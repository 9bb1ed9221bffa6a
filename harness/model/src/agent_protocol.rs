//! What passes between Reprise and the workspace-agent: what to start, and what happened.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Snapshot;

/// A script's id for one start of the workspace, as Coder draws it: new every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScriptId(pub Uuid);

/// When a script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptPhase {
    /// When the workspace starts.
    Start,
    /// When it is asked to stop.
    Stop,
}

/// A module's script, as its Terraform rendered it (`coder_script`,
/// <https://registry.terraform.io/providers/coder/coder/latest/docs/resources/script>).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// What Coder's dashboard shows.
    pub display_name: String,
    /// The text, shebang included.
    pub script: String,
    /// Whether it runs at start.
    pub run_on_start: bool,
    /// Whether it runs at stop.
    pub run_on_stop: bool,
    /// Seconds it may take; 0 is no limit.
    pub timeout: u64,
    /// A log path of the module's own choosing.
    pub log_path: Option<String>,
}

/// What PID 1 of a workspace is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitSpec {
    /// The workspace's scripts.
    pub scripts: Vec<Script>,
    /// The environment every process of the workspace gets, beside the image's own.
    pub env: BTreeMap<String, String>,
    /// The user's home.
    pub home: String,
    /// Where scripts start: the agent's `dir`, or the home.
    pub directory: String,
    /// Seconds all stop scripts together may take.
    pub stop_deadline: u64,
    /// Whether to look at the home before the first script runs and after the last stop script.
    pub probe_home: bool,
    /// At the first start: the home is new, and gets what the machine gives a new user, and these files below it.
    #[serde(default)]
    pub files: Option<BTreeMap<String, String>>,
    /// Everything in the home but these paths is removed before the start: a volume that holds no more than they.
    #[serde(default)]
    pub keep_only: Option<Vec<String>>,
    /// What befell the home while the workspace was down.
    #[serde(default)]
    pub damage: Option<Damage>,
    /// Files that somebody has written before the first script runs: their paths, those in the home below it, and contents.
    #[serde(default)]
    pub written: BTreeMap<String, String>,
    /// Directories and links that a start finds.
    #[serde(default)]
    pub places: Vec<Place>,
    /// Files below the home whose writing is told of while the workspace stops.
    #[serde(default)]
    pub watch: Vec<String>,
}

/// Damage to an agent's session files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// What is done to them.
    pub kind: DamageKind,
    /// The files, as globs below the home.
    pub files: Vec<String>,
}

/// What is done to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DamageKind {
    /// They are removed.
    Gone,
    /// They are empty.
    Empty,
    /// Their second half is missing.
    Truncated,
    /// Their content is overwritten, their size stays.
    Corrupt,
    /// They were last written forty days ago.
    Old,
}

/// A directory that a workspace has beside its home's own, or a link to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its path.
    pub path: String,
    /// Where it leads, if it is a link.
    #[serde(default)]
    pub link_to: Option<String>,
}

/// Which of a script's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What PID 1 says on its standard output, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent {
    /// PID 1 is up.
    Booted {
        /// Processes alive beside PID 1.
        processes: usize,
    },
    /// All of the home but some paths was removed, as it was asked for.
    HomePruned {
        /// What stayed, below the home.
        kept: Vec<String>,
    },
    /// The home as the start found it, before any script.
    HomeFound {
        /// What lay there.
        snapshot: Box<Snapshot>,
    },
    /// A script began.
    ScriptStarted {
        /// Its id in this start.
        id: ScriptId,
        /// Its name.
        name: String,
        /// Start or stop.
        phase: ScriptPhase,
        /// `CODER_SCRIPT_DATA_DIR`.
        data_dir: String,
    },
    /// A script wrote a line.
    ScriptLog {
        /// Its id in this start.
        id: ScriptId,
        /// Which stream.
        stream: LogStream,
        /// The line, without its end.
        line: String,
    },
    /// A script ended.
    ScriptEnded {
        /// Its id in this start.
        id: ScriptId,
        /// Its name.
        name: String,
        /// Start or stop.
        phase: ScriptPhase,
        /// Exit code; `None` if it was killed or never started.
        code: Option<i32>,
        /// What went wrong beside the code: a time-out, a signal, a shebang that is no program.
        problem: Option<String>,
        /// How long it took.
        millis: u64,
    },
    /// All start scripts ended.
    StartFinished {
        /// How many of them failed.
        failed: usize,
    },
    /// PID 1 was asked to stop.
    Stopping {
        /// The signal's name.
        signal: String,
    },
    /// The home as the stop scripts left it.
    HomeLeft {
        /// What lay there.
        snapshot: Box<Snapshot>,
    },
    /// Session files were damaged, as it was asked for.
    HomeDamaged {
        /// Which, below the home.
        files: Vec<String>,
    },
    /// A watched file was written while the workspace stopped.
    FileWritten {
        /// Which, below the home.
        path: String,
        /// Its size then.
        size: u64,
    },
    /// The last process of a program ended while the workspace stopped.
    ProgramEnded {
        /// The program's name.
        name: String,
    },
    /// PID 1 is about to end; whatever still runs is killed with it.
    Stopped {
        /// The command lines of what still runs.
        #[serde(default)]
        left: Vec<String>,
    },
    /// Something PID 1 could not do.
    Trouble {
        /// What, and why.
        message: String,
    },
}

/// A command for the workspace-agent to run: the first line of its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment beside the workspace-agent's.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it starts, if not where the workspace-agent does.
    pub cwd: Option<String>,
    /// How many bytes after this line are the command's input.
    #[serde(default)]
    pub input: u64,
}
