//! One workspace's life on an engine: created, started, spoken to, ended, started again, deleted.

mod agentapi;
mod events;
mod plan;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reprise_engine::{
    Door, Engine, EngineError, Exec, ExecOutput, Labels, Progress, Started, TOOLS_DIR,
};
use reprise_gateway::Gateway;
use reprise_model::{InstanceId, Observation, Snapshot, WorkspaceId};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::task::JoinHandle;

use crate::record::{RecordError, Recorder};

pub(crate) use reprise_engine::with_causes;

pub use agentapi::{AgentApi, AgentApiError, Status};
pub use events::{ScriptFailure, Starting};
pub use plan::StartPlan;

use plan::{Around, STOP_DEADLINE};

/// Where every workspace's home is.
pub const HOME: &str = "/home/coder";

/// Where packages of npm's registry are shown in a workspace. Some look for their parts in a directory of that name.
pub const NPM_DIR: &str = "/run/reprise/node_modules";

/// Where distributions of Python's package index are shown in a workspace.
pub const PYPI_DIR: &str = "/run/reprise/python";

/// The grace of a stop that shall end too early.
const SHORT_GRACE: Duration = Duration::from_secs(2);

/// How long a workspace may take to stop before it is killed: the stop scripts' time and a little.
const GRACE: Duration = Duration::from_secs(STOP_DEADLINE + 15);

/// What can go wrong with a workspace; none of it is the agent's doing.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// The engine failed.
    #[error("{}", with_causes(.0))]
    Engine(#[from] EngineError),
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The gateway cannot be served.
    #[error("cannot serve the gateway: {0}")]
    Gateway(std::io::Error),
    /// A role of this program failed inside the workspace.
    #[error("`{role}` failed in the workspace: {said}")]
    Role {
        /// Which role.
        role: String,
        /// What it said.
        said: String,
    },
    /// An agent's command could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Command {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not running.
    #[error("the workspace is not running")]
    NotRunning,
}

/// Has the gateway serve a workspace's door to it.
fn open(gateway: &mut Gateway, workspace: WorkspaceId, door: Door) -> Result<(), WorkspaceError> {
    match door {
        Door::Far(dial) => {
            gateway.serve_far(workspace, dial);
            Ok(())
        }
        Door::Tcp(listener) => gateway.serve_tcp(listener),
        Door::Unix(listener) => gateway.serve_unix(listener),
    }
    .map_err(WorkspaceError::Gateway)
}

/// How a workspace ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is asked to stop.
    Stop,
    /// Its node is drained.
    Drain,
    /// It is asked to stop, and given too little time.
    ShortGrace,
    /// It is killed.
    Kill,
    /// Its container is killed, and started again by the engine if that does so.
    KillContainer,
    /// It takes too much memory.
    OutOfMemory,
    /// Its node loses power.
    PowerLoss,
}

/// A command that is under way.
#[derive(Debug)]
pub struct Begun(JoinHandle<Result<ExecOutput, EngineError>>);

impl Begun {
    /// Waits for its end.
    ///
    /// # Errors
    /// If it could not be run to its end.
    pub async fn ended(&mut self) -> Result<ExecOutput, WorkspaceError> {
        let ended = (&mut self.0).await;
        Ok(ended.expect("an engine does not panic and is not aborted while it is waited for")?)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One workspace.
pub struct Workspace {
    engine: Arc<dyn Engine>,
    labels: Labels,
    address: std::net::SocketAddr,
    gateway: Gateway,
    recorder: Arc<Recorder>,
    program: PathBuf,
    /// A start that is under way. It is never cut off in the middle: what an engine has begun to make could not be found
    /// and removed then.
    starting: Option<JoinHandle<Result<Started, EngineError>>>,
    running: Option<Running>,
    /// An instance whose processes were killed and that the engine starts again by itself.
    coming_again: Option<InstanceId>,
}

struct Running {
    instance: InstanceId,
    events: events::Events,
    env: BTreeMap<String, String>,
}

impl Workspace {
    /// Makes the workspace's volume and its way to the gateway. `program` is this program, static.
    ///
    /// # Errors
    /// If the engine cannot.
    pub async fn create(
        engine: Arc<dyn Engine>,
        labels: Labels,
        mut gateway: Gateway,
        recorder: Arc<Recorder>,
        program: PathBuf,
        port: Option<u16>,
        progress: Progress<'_>,
    ) -> Result<Self, WorkspaceError> {
        engine.prepare(progress).await?;
        let route = engine.create(&labels, port).await?;
        if let Some(door) = route.door {
            open(&mut gateway, labels.workspace, door)?;
        }
        Ok(Self {
            engine,
            labels,
            address: route.address,
            gateway,
            recorder,
            program,
            starting: None,
            running: None,
            coming_again: None,
        })
    }

    /// Puts the home on a disk of its own, before the first start.
    ///
    /// # Errors
    /// If the engine cannot.
    pub async fn give_disk(&self, bytes: u64) -> Result<(), WorkspaceError> {
        Ok(self.engine.give_disk(self.labels.workspace, bytes).await?)
    }

    /// The gateway's address as the workspace knows it.
    #[must_use]
    pub fn gateway_address(&self) -> std::net::SocketAddr {
        self.address
    }

    /// The gateway.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Starts the workspace and waits until its start scripts ended. Tells how they ended.
    ///
    /// # Errors
    /// If the engine cannot start it.
    pub async fn start(
        &mut self,
        epoch: u32,
        plan: StartPlan,
        limit: Duration,
    ) -> Result<Starting, WorkspaceError> {
        self.gateway
            .set_epoch(epoch)
            .await
            .map_err(WorkspaceError::Gateway)?;
        let spec = plan.spec(&Around {
            epoch,
            labels: &self.labels,
            gateway: self.address,
            program: &self.program,
            record: self.recorder.dir(),
        })?;
        let (env, only_begun) = (spec.env.clone(), plan.only_begun);
        let engine = Arc::clone(&self.engine);
        let again = self.coming_again.take();
        let starting = self.starting.insert(tokio::spawn(async move {
            match again {
                Some(instance) => engine.started_again(&instance).await,
                None => engine.start(&spec).await,
            }
        }));
        let started = starting.await;
        self.starting = None;
        let started = started.expect("an engine does not panic and is not aborted")?;
        self.recorder.observe(Observation::Instance {
            epoch,
            id: started.instance.clone(),
        })?;
        if let Some(door) = started.door {
            open(&mut self.gateway, self.labels.workspace, door)?;
        }
        let mut events = events::Events::follow(started.lines, epoch, Arc::clone(&self.recorder));
        let starting = events.start_finished(only_begun, limit).await;
        self.running = Some(Running {
            instance: started.instance,
            events,
            env,
        });
        Ok(starting)
    }

    /// Runs a command in the workspace, with the workspace's environment.
    ///
    /// # Errors
    /// If it could not be run. A bad exit code is no error.
    pub async fn exec(&self, exec: Exec) -> Result<ExecOutput, WorkspaceError> {
        let (instance, exec) = self.ours(exec)?;
        Ok(self.engine.exec(&instance, &exec).await?)
    }

    /// Begins a command in the workspace that goes on until the workspace ends, or until what is returned is dropped.
    ///
    /// # Errors
    /// If the workspace does not run.
    pub fn begin(&self, exec: Exec) -> Result<Begun, WorkspaceError> {
        let (instance, exec) = self.ours(exec)?;
        let engine = Arc::clone(&self.engine);
        Ok(Begun(tokio::spawn(async move {
            engine.exec(&instance, &exec).await
        })))
    }

    fn ours(&self, mut exec: Exec) -> Result<(InstanceId, Exec), WorkspaceError> {
        let running = self.running.as_ref().ok_or(WorkspaceError::NotRunning)?;
        for (name, value) in &running.env {
            exec.env
                .entry(name.clone())
                .or_insert_with(|| value.clone());
        }
        Ok((running.instance.clone(), exec))
    }

    /// Plays a role of the workspace-agent and reads the JSON it prints.
    ///
    /// # Errors
    /// If it fails.
    pub async fn role<T: DeserializeOwned>(
        &self,
        args: &[&str],
        stdin: Vec<u8>,
        privileged: bool,
    ) -> Result<T, WorkspaceError> {
        let mut exec = Exec::new(
            [&format!("{TOOLS_DIR}/reprise"), "workspace-agent"]
                .into_iter()
                .chain(args.iter().copied()),
        );
        exec.stdin = stdin;
        exec.privileged = privileged;
        let output = self.exec(exec).await?;
        let failed = |said: String| WorkspaceError::Role {
            role: args.join(" "),
            said,
        };
        if output.code != 0 {
            return Err(failed(output.text().trim().to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
    }

    /// What lies below a directory now.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub async fn probe(&self, dir: &str) -> Result<Snapshot, WorkspaceError> {
        self.role(&["probe", dir], Vec::new(), false).await
    }

    /// Ends the workspace, and waits until it is gone and all it said is recorded. Tells whether it ended by itself; what is
    /// killed does not. `next` is the start that comes after.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub async fn end(&mut self, ending: Ending, next: u32) -> Result<bool, WorkspaceError> {
        let mut running = self.running.take().ok_or(WorkspaceError::NotRunning)?;
        let (engine, instance) = (&self.engine, &running.instance);
        let by_itself = match ending {
            Ending::Stop => engine.stop(instance, GRACE).await?,
            Ending::ShortGrace => engine.stop(instance, SHORT_GRACE).await?,
            Ending::Drain => engine.evict(instance, GRACE).await?,
            Ending::Kill => {
                engine.kill(instance).await?;
                false
            }
            Ending::OutOfMemory => {
                engine.exhaust_memory(instance).await?;
                false
            }
            Ending::PowerLoss => {
                engine.lose_power(self.labels.workspace, instance).await?;
                false
            }
            Ending::KillContainer => {
                // It may come again at any time.
                self.gateway
                    .set_epoch(next)
                    .await
                    .map_err(WorkspaceError::Gateway)?;
                if engine.kill_container(instance).await? {
                    self.coming_again = Some(instance.clone());
                }
                false
            }
        };
        running.events.ended().await?;
        self.all_recorded().await?;
        Ok(by_itself)
    }

    /// Ends what runs workspaces on their node, and starts it again.
    ///
    /// # Errors
    /// If it does not come up again.
    pub async fn restart_node_agent(&self) -> Result<(), WorkspaceError> {
        Ok(self.engine.restart_node_agent().await?)
    }

    /// Makes the workspace's volume larger.
    ///
    /// # Errors
    /// If it does not grow.
    pub async fn grow_volume(&self) -> Result<(), WorkspaceError> {
        Ok(self.engine.grow_volume(self.labels.workspace).await?)
    }

    /// Waits until everything that has crossed the wire is recorded.
    ///
    /// # Errors
    /// If the gateway is served elsewhere, and that place is not reached any more.
    pub async fn all_recorded(&self) -> Result<(), WorkspaceError> {
        self.gateway.flush().await.map_err(WorkspaceError::Gateway)
    }

    /// Deletes the workspace and all that belongs to it.
    ///
    /// # Errors
    /// If something of it is left.
    pub async fn delete(&mut self) -> Result<(), WorkspaceError> {
        self.running = None;
        if let Some(starting) = self.starting.take() {
            // Whether it came up or not, now it can be seen.
            let _ = starting.await;
        }
        // A gateway that is not reached any more has said so in the record.
        let _ = self.all_recorded().await;
        Ok(self.engine.delete(self.labels.workspace).await?)
    }
}
