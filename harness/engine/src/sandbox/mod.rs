//! Namespaces on this machine: no daemon, no image, no root needed.
//!
//! Each start is a process tree of its own in new user (unless root), mount, pid, network, ipc and uts namespaces:
//! the machine's own root as an ephemeral overlay (or read-only, for a normal user), a fresh /tmp, and the
//! workspace's home bound in. Its network is a loopback and nothing else; the gateway's socket is opened in there and
//! handed out.

mod enter;
mod handover;
mod mounts;
mod store;
mod world;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use reprise_model::{EngineKind, InstanceId, WorkspaceId};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;
use uuid::Uuid;

pub use enter::main as enter_main;
pub use world::main as world_main;

use crate::{
    Door, Engine, EngineError, Exec, ExecOutput, Labels, Leftover, LeftoverKind, Missing, Progress,
    Route, StartSpec, Started, Uid,
};
use store::{Record, Store};

/// The hidden command by which the program makes a sandbox of itself.
pub const WORLD_ROLE: &str = "sandbox-world";

/// The hidden command by which the program goes into one.
pub const ENTER_ROLE: &str = "sandbox-enter";

/// The sandbox engine.
#[derive(Debug)]
pub struct Sandbox {
    program: PathBuf,
    store: Store,
}

impl Sandbox {
    /// An engine that keeps its volumes below `state` and starts `program` in its two hidden roles.
    #[must_use]
    pub fn new(program: PathBuf, state: PathBuf) -> Self {
        Self {
            program,
            store: Store::new(state),
        }
    }

    /// What this machine lacks for sandboxes, if anything.
    ///
    /// # Errors
    /// With what is missing and what would help.
    pub fn check() -> Result<(), Missing> {
        world::check()
    }

    fn record(&self, instance: &InstanceId) -> Result<Record, EngineError> {
        self.store
            .instance(instance)
            .ok()
            .filter(Record::alive)
            .ok_or_else(|| EngineError::NotRunning(instance.to_string()))
    }

    /// Waits until the supervisor, and with it the whole sandbox, is gone.
    async fn gone(&self, record: &Record, limit: Duration) -> bool {
        let ended = async {
            while record.alive() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(limit, ended).await.is_ok()
    }

    async fn kill_record(&self, record: &Record) -> Result<(), EngineError> {
        // The end of a namespace's PID 1 is the end of every process in it.
        let _ = kill(Pid::from_raw(record.init), Signal::SIGKILL);
        if self.gone(record, Duration::from_secs(10)).await {
            Ok(())
        } else {
            Err(EngineError::NotStarted(format!(
                "process {} outlived SIGKILL by 10 s",
                record.init
            )))
        }
    }
}

/// Sends each line; when the receiver is gone the pipe is emptied all the same, so that nobody blocks on it.
async fn forward(pipe: impl AsyncRead + Unpin, sender: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(pipe).split(b'\n');
    while let Ok(Some(line)) = reader.next_segment().await {
        let _ = sender
            .send(String::from_utf8_lossy(&line).into_owned())
            .await;
    }
}

#[async_trait]
impl Engine for Sandbox {
    fn kind(&self) -> EngineKind {
        EngineKind::Sandbox
    }

    async fn version(&self) -> Result<String, EngineError> {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(EngineError::io("read", "/proc/sys/kernel/osrelease"))?;
        let user = if geteuid().is_root() {
            "root"
        } else {
            "normal user"
        };
        Ok(format!("Linux {} as {user}", kernel.trim()))
    }

    async fn prepare(&self, _progress: Progress<'_>) -> Result<(), EngineError> {
        Self::check()?;
        Ok(())
    }

    async fn create(&self, labels: &Labels, port: Option<u16>) -> Result<Route, EngineError> {
        self.store.create_volume(labels)?;
        Ok(Route {
            address: Route::address(port),
            door: None,
        })
    }

    async fn start(&self, spec: &StartSpec) -> Result<Started, EngineError> {
        let instance = InstanceId(Uuid::new_v4().to_string());
        let plan = world::Plan {
            spec: spec.clone(),
            volume: self.store.volume_home(spec.labels.workspace),
        };
        let dir = self.store.create_instance(&instance, &plan)?;
        let (ours, theirs) = handover::pair()?;
        let mut command = Command::new(&self.program);
        command
            .arg(WORLD_ROLE)
            .arg(&dir)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        handover::give(&mut command, theirs);
        let started = async {
            let mut child = command
                .spawn()
                .map_err(EngineError::io("run", &self.program))?;
            // Dropped with the spawned task below; its end tells the supervisor that nobody is left to serve.
            let lifeline = child.stdin.take();
            let mut stderr = child.stderr.take().expect("it was asked for");
            let stdout = child.stdout.take().expect("it was asked for");
            // Its copy of the sandbox's end of the socket pair would keep the other end from seeing it close.
            drop(command);
            let received = tokio::task::spawn_blocking(move || handover::receive(&ours))
                .await
                .expect("receiving does not panic");
            let (init, listener) = match received {
                Ok(received) => received,
                Err(_) => {
                    drop(lifeline);
                    let mut said = String::new();
                    let _ = stderr.read_to_string(&mut said).await;
                    let _ = child.wait().await;
                    return Err(EngineError::NotStarted(said.trim().to_owned()));
                }
            };
            let supervisor = child.id().map_or(0, u32::cast_signed);
            self.store
                .record_instance(&instance, &Record::of(&spec.labels, supervisor, init))?;
            let (sender, lines) = mpsc::channel(256);
            tokio::spawn(async move {
                tokio::join!(forward(stdout, &sender), forward(stderr, &sender));
                let _ = child.wait().await;
                drop(lifeline);
            });
            Ok(Started {
                instance: instance.clone(),
                lines,
                door: Some(Door::Tcp(listener)),
            })
        };
        let started = started.await;
        if started.is_err() {
            self.store.remove_instance(&instance)?;
        }
        started
    }

    async fn exec(&self, instance: &InstanceId, exec: &Exec) -> Result<ExecOutput, EngineError> {
        let record = self.record(instance)?;
        let command = exec.argv.join(" ");
        let failed = |error: std::io::Error| EngineError::Exec {
            command: command.clone(),
            reason: error.to_string(),
        };
        let plan = self.store.plan(instance)?;
        let order = enter::Order {
            init: record.init,
            argv: exec.argv.clone(),
            env: plan.spec.env.into_iter().chain(exec.env.clone()).collect(),
            cwd: exec.cwd.clone().unwrap_or(plan.spec.home),
            privileged: exec.privileged,
        };
        let order = serde_json::to_string(&order).expect("an order is JSON");
        let mut child = Command::new(&self.program)
            .arg(ENTER_ROLE)
            .arg(order)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut stdin = child.stdin.take().expect("it was asked for");
        let input = exec.stdin.clone();
        let feed = tokio::spawn(async move {
            // A command that does not read its input closes it; that is its own business.
            let _ = stdin.write_all(&input).await;
        });
        let output = tokio::time::timeout(exec.timeout, child.wait_with_output())
            .await
            .map_err(|_| EngineError::ExecTimedOut {
                command: command.clone(),
                limit: exec.timeout,
            })?
            .map_err(failed)?;
        feed.abort();
        match output.status.code() {
            Some(enter::CANNOT_ENTER) if output.stderr.starts_with(enter::COMPLAINT.as_bytes()) => {
                Err(EngineError::Exec {
                    command,
                    reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                })
            }
            Some(code) => Ok(ExecOutput {
                code,
                stdout: output.stdout,
                stderr: output.stderr,
            }),
            None => Err(EngineError::NotRunning(instance.to_string())),
        }
    }

    async fn stop(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError> {
        let Ok(record) = self.record(instance) else {
            self.store.remove_instance(instance)?;
            return Ok(true);
        };
        let _ = kill(Pid::from_raw(record.init), Signal::SIGTERM);
        let by_itself = self.gone(&record, grace).await;
        if !by_itself {
            self.kill_record(&record).await?;
        }
        self.store.remove_instance(instance)?;
        Ok(by_itself)
    }

    async fn kill(&self, instance: &InstanceId) -> Result<(), EngineError> {
        if let Ok(record) = self.record(instance) {
            self.kill_record(&record).await?;
        }
        self.store.remove_instance(instance)
    }

    async fn delete(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        for leftover in self.store.leftovers()? {
            let ours = leftover.workspace == Some(workspace);
            if ours && leftover.kind == LeftoverKind::Instance {
                self.kill(&InstanceId(leftover.name)).await?;
            }
        }
        self.store.remove_volume(&workspace.to_string()).await
    }

    async fn give_disk(&self, workspace: WorkspaceId, bytes: u64) -> Result<(), EngineError> {
        let disk = self.store.disk(&workspace.to_string());
        disk.make(bytes, Uid::CODER.0).await
    }

    async fn lose_power(
        &self,
        workspace: WorkspaceId,
        instance: &InstanceId,
    ) -> Result<(), EngineError> {
        let disk = self.store.disk(&workspace.to_string());
        disk.freeze().await?;
        self.kill(instance).await?;
        disk.thaw().await
    }

    async fn leftovers(&self) -> Result<Vec<Leftover>, EngineError> {
        self.store.leftovers()
    }

    async fn remove(&self, leftover: &Leftover) -> Result<(), EngineError> {
        match leftover.kind {
            LeftoverKind::Instance => self.kill(&InstanceId(leftover.name.clone())).await,
            LeftoverKind::Route => Ok(()),
            LeftoverKind::Volume => self.store.remove_volume(&leftover.name).await,
        }
    }
}
