//! What an engine is asked for and what it gives.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reprise_gateway::far::Dial;
use reprise_model::{InstanceId, RunId, WorkspaceId};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// The user every workspace runs as: Coder's images call it so.
pub const USER: &str = "coder";

/// That user's ids inside a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uid(pub u32);

impl Uid {
    /// The user and the group of [`USER`].
    pub const CODER: Self = Self(1000);
}

/// Where mounted programs lie inside a workspace; it stands first in PATH.
pub const TOOLS_DIR: &str = "/run/reprise/bin";

/// Where injected files lie inside a workspace.
pub const START_FILES: &str = "/run/reprise";

/// PID 1's command line: it reads its spec from the file of that name among a start's [`InjectedFile`]s.
#[must_use]
pub fn init_command() -> Vec<String> {
    vec![
        format!("{TOOLS_DIR}/reprise"),
        "workspace-agent".to_owned(),
        "init".to_owned(),
        format!("{START_FILES}/spec.json"),
    ]
}

/// Who made an object: what every object carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// The run that made it.
    pub run: RunId,
    /// When it was made.
    pub created: Timestamp,
    /// The process that made it.
    pub pid: u32,
    /// The machine that process runs on: an engine may be shared by several.
    #[serde(default)]
    pub host: String,
}

impl Maker {
    /// This process, on this machine, now.
    #[must_use]
    pub fn this(run: RunId) -> Self {
        Self {
            run,
            created: Timestamp::now(),
            pid: std::process::id(),
            host: this_host(),
        }
    }
}

/// This machine's name.
#[must_use]
pub fn this_host() -> String {
    nix::unistd::gethostname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// What every object of a workspace carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Who made it.
    #[serde(flatten)]
    pub maker: Maker,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
}

/// A file or directory of this machine, shown read-only inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it lies on this machine.
    pub source: PathBuf,
    /// Where it is shown, below [`START_FILES`].
    pub target: PathBuf,
}

/// A file written into a new instance before its first process starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedFile {
    /// Its name below [`START_FILES`].
    pub name: String,
    /// Its content.
    pub content: String,
}

/// One start of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartSpec {
    /// Whose it is.
    pub labels: Labels,
    /// The host name inside.
    pub hostname: String,
    /// The gateway's address as the workspace will know it, as [`Route`] has it.
    pub gateway: SocketAddr,
    /// Where the volume is mounted.
    pub home: PathBuf,
    /// PID 1's command line; an engine may add options that PID 1 takes.
    pub init: Vec<String>,
    /// PID 1's environment.
    pub env: BTreeMap<String, String>,
    /// Programs.
    pub mounts: Vec<Mount>,
    /// Files.
    pub files: Vec<InjectedFile>,
    /// Whether the engine, if it can, starts the instance's processes again by itself when they have ended.
    #[serde(default)]
    pub in_place: bool,
    /// Whether each start bears the same name, as in a StatefulSet, where the engine gives names.
    #[serde(default)]
    pub same_name: bool,
}

/// What not every engine can do to a workspace: asked for before a scenario starts that needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// Start again what runs workspaces on their node.
    RestartNodeAgent,
    /// Make a volume larger.
    GrowVolume,
    /// Put a home on a disk of its own, which has a size and can lose power.
    OwnDisk,
}

/// How a workspace reaches the gateway.
pub enum Door {
    /// Opened inside the workspace's own network.
    Tcp(TcpListener),
    /// Mounted into the workspace, where PID 1 forwards the gateway's address to it.
    Unix(UnixListener),
    /// A host beside the workspace answers in the gateway's place; this is the way to it.
    Far(Arc<dyn Dial>),
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(listener) => f.debug_tuple("Tcp").field(listener).finish(),
            Self::Unix(listener) => f.debug_tuple("Unix").field(listener).finish(),
            Self::Far(_) => f.debug_tuple("Far").finish(),
        }
    }
}

/// The way from a workspace to the gateway. The workspace has no other network than its loopback.
#[derive(Debug)]
pub struct Route {
    /// The address the workspace uses: on its loopback.
    pub address: SocketAddr,
    /// The socket to serve, if it exists before the workspace starts. Otherwise each start hands one over.
    pub door: Option<Door>,
}

impl Route {
    /// The gateway's port inside a workspace where none was asked for. The network is the workspace's own, so only
    /// its own programs could have taken it.
    pub(crate) const PORT: u16 = 8377;

    pub(crate) fn address(port: Option<u16>) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(Self::PORT)))
    }
}

/// A started instance.
#[derive(Debug)]
pub struct Started {
    /// Its id: new at every start.
    pub instance: InstanceId,
    /// What PID 1 writes to its standard output, by line. Ends when PID 1 does.
    pub lines: mpsc::Receiver<String>,
    /// The gateway's socket, if this start opened one.
    pub door: Option<Door>,
}

/// A command to run in an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment beside PID 1's.
    pub env: BTreeMap<String, String>,
    /// Where it starts; the home if `None`.
    pub cwd: Option<PathBuf>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// As the most powerful user the instance has, instead of [`USER`].
    pub privileged: bool,
    /// How long it may take.
    pub timeout: Duration,
}

impl Exec {
    /// A command with no input and a minute's time.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            stdin: Vec::new(),
            privileged: false,
            timeout: Duration::from_secs(60),
        }
    }
}

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// Exit code; 128 + n after signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl ExecOutput {
    /// Both streams as text, for messages.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&self.stderr));
        text
    }
}

/// What kind of object a leftover is, in the order in which they must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeftoverKind {
    /// A container, a sandbox.
    Instance,
    /// The place of a gateway's socket.
    Route,
    /// A volume.
    Volume,
}

impl std::fmt::Display for LeftoverKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Instance => "instance",
            Self::Route => "route",
            Self::Volume => "volume",
        })
    }
}

/// An object with Reprise's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// The engine's name of it.
    pub name: String,
    /// Who made it; `None` if that cannot be read.
    pub maker: Option<Maker>,
    /// The workspace it belongs to, if it is one's.
    pub workspace: Option<WorkspaceId>,
}

impl Leftover {
    /// A workspace's object, or one whose labels cannot be read.
    pub(crate) fn new(kind: LeftoverKind, name: String, labels: Option<Labels>) -> Self {
        let (maker, workspace) = labels
            .map(|labels| (labels.maker, labels.workspace))
            .unzip();
        Self {
            kind,
            name,
            maker,
            workspace,
        }
    }
}
