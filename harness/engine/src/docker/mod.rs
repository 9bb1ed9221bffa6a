//! Containers of a Docker daemon on this machine, through bollard; any daemon that speaks API 1.41 or newer.
//!
//! A workspace has a named volume and no network but its loopback: the gateway's socket is mounted into the container,
//! and PID 1 forwards to it. (An internal network would leave every address of this machine in reach.) A start is a new
//! container on the old volume, which is what Coder's Docker templates do.

mod image;
mod objects;
mod routes;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker as Client;
use bollard::container::LogOutput;
use bollard::errors::Error as ClientError;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, ListVolumesOptionsBuilder,
    LogsOptionsBuilder, StopContainerOptionsBuilder,
};
use futures::{Stream, StreamExt, TryStreamExt};
use reprise_model::{EngineKind, InstanceId, WorkspaceId};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use uuid::Uuid;

use objects::{LABEL, gone, read_labels, volume_name};
use routes::Routes;

use crate::disk::Disk;
use crate::{
    Door, Engine, EngineError, Exec, ExecOutput, Labels, Leftover, LeftoverKind, Missing, Progress,
    Route, StartSpec, Started, Uid,
};

/// The Docker engine.
#[derive(Debug, Clone)]
pub struct Docker {
    client: Client,
    routes: Routes,
    /// Where the images of volumes lie that are disks of their own.
    disks: PathBuf,
}

impl Docker {
    /// Connects to the daemon that `DOCKER_HOST` names, or the one on the usual socket. Gateway sockets are kept below
    /// `state`.
    ///
    /// # Errors
    /// If none answers, or it is another machine's: programs are bind-mounted into containers.
    pub async fn connect(state: PathBuf) -> Result<Self, Missing> {
        let missing = |what: String| Missing {
            what,
            remedy: "start dockerd, set DOCKER_HOST, or use --engine sandbox".to_owned(),
        };
        if let Some(host) = std::env::var("DOCKER_HOST")
            .ok()
            .filter(|host| !host.starts_with("unix://") && !host.is_empty())
        {
            return Err(missing(format!(
                "the Docker daemon {host} is not on this machine, and workspaces need programs of this machine"
            )));
        }
        let client = Client::connect_with_defaults()
            .map_err(|error| missing(format!("no Docker daemon: {error}")))?;
        let client = client
            .negotiate_version()
            .await
            .map_err(|error| missing(format!("no Docker daemon answers: {error}")))?;
        // Beside the routes: every directory among those is a workspace's.
        let disks = state.with_file_name("docker-disks");
        let routes = Routes::new(state);
        Ok(Self {
            client,
            routes,
            disks,
        })
    }

    /// The disk that a volume may be on.
    fn disk(&self, volume: &str) -> (Disk, PathBuf) {
        let dir = self.disks.join(volume);
        let home = dir.join("home");
        (Disk::of(dir, home.clone()), home)
    }

    /// Removes a volume, and the disk it is on.
    async fn remove_whole_volume(&self, name: &str) -> Result<(), EngineError> {
        self.remove_volume(name).await?;
        let (disk, _) = self.disk(name);
        disk.remove().await
    }

    fn filter() -> HashMap<&'static str, Vec<&'static str>> {
        HashMap::from([("label", vec![LABEL])])
    }
}

/// Sends what a container writes, by line.
async fn forward(
    mut output: impl Stream<Item = Result<LogOutput, ClientError>> + Unpin,
    lines: mpsc::Sender<String>,
) {
    let mut rest = Vec::new();
    while let Some(Ok(piece)) = output.next().await {
        rest.extend_from_slice(&piece.into_bytes());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            if lines.send(line).await.is_err() {
                return;
            }
        }
    }
}

impl Docker {
    /// Makes an image of the base image with directories of this machine and scripts on PATH in it, under `tag`.
    ///
    /// # Errors
    /// If the daemon does not build it.
    pub async fn layer(
        &self,
        tag: &str,
        directories: &BTreeMap<PathBuf, PathBuf>,
        programs: &[(String, String)],
    ) -> Result<(), EngineError> {
        image::layer(&self.client, tag, directories, programs).await
    }

    /// Makes the image of `program` alone, under `tag`, if the daemon does not have it.
    ///
    /// # Errors
    /// If the daemon does not build it.
    pub async fn program_image(
        &self,
        tag: &str,
        program: &std::path::Path,
    ) -> Result<(), EngineError> {
        if self.client.inspect_image(tag).await.is_ok() {
            return Ok(());
        }
        image::program(&self.client, tag, program).await
    }

    /// Gives an image a second name.
    ///
    /// # Errors
    /// If the daemon does not have it.
    pub async fn tag(&self, image: &str, name: &str) -> Result<(), EngineError> {
        let (repository, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
        let options = bollard::query_parameters::TagImageOptionsBuilder::new()
            .repo(repository)
            .tag(tag)
            .build();
        self.client
            .tag_image(image, Some(options))
            .await
            .map_err(EngineError::docker(format!("name {image} {name}")))
    }
}

#[async_trait]
impl Engine for Docker {
    fn kind(&self) -> EngineKind {
        EngineKind::Docker
    }

    async fn version(&self) -> Result<String, EngineError> {
        let version = self
            .client
            .version()
            .await
            .map_err(EngineError::docker("ask for the version"))?;
        let server = version.version.unwrap_or_else(|| "?".to_owned());
        Ok(format!(
            "Docker {server}, API {}",
            self.client.client_version()
        ))
    }

    async fn prepare(&self, progress: Progress<'_>) -> Result<(), EngineError> {
        image::ensure(&self.client, progress).await
    }

    async fn create(&self, labels: &Labels, port: Option<u16>) -> Result<Route, EngineError> {
        let name = volume_name(labels.workspace);
        let volume = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(objects::labels(labels)),
            ..Default::default()
        };
        self.client
            .create_volume(volume)
            .await
            .map_err(EngineError::docker(format!("create volume {name}")))?;
        let door = self.routes.open(labels)?;
        Ok(Route {
            address: Route::address(port),
            door: Some(Door::Unix(door)),
        })
    }

    async fn start(&self, spec: &StartSpec) -> Result<Started, EngineError> {
        let name = format!("reprise-{}", Uuid::new_v4());
        self.create_container(&name, spec).await?;
        let started = async {
            self.inject(&name, spec).await?;
            self.client
                .start_container(&name, None)
                .await
                .map_err(EngineError::docker(format!("start container {name}")))
        };
        if let Err(error) = started.await {
            self.remove_container(&name).await?;
            return Err(error);
        }
        let options = LogsOptionsBuilder::new()
            .follow(true)
            .stdout(true)
            .stderr(true)
            .build();
        let (sender, lines) = mpsc::channel(256);
        let client = self.client.clone();
        let container = name.clone();
        tokio::spawn(async move {
            forward(Box::pin(client.logs(&container, Some(options))), sender).await;
        });
        Ok(Started {
            instance: InstanceId(name),
            lines,
            door: None,
        })
    }

    async fn exec(&self, instance: &InstanceId, exec: &Exec) -> Result<ExecOutput, EngineError> {
        let command = exec.argv.join(" ");
        let doing = || format!("run `{command}` in container {instance}");
        let config = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(exec.argv.clone()),
            env: Some(
                exec.env
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect(),
            ),
            user: exec.privileged.then(|| "0:0".to_owned()),
            working_dir: exec.cwd.as_ref().map(|dir| dir.display().to_string()),
            ..Default::default()
        };
        let id = match self.client.create_exec(&instance.0, config).await {
            Ok(created) => created.id,
            Err(ClientError::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => return Err(EngineError::NotRunning(instance.to_string())),
            Err(error) => return Err(EngineError::docker(doing())(error)),
        };
        let run = async {
            let started = self
                .client
                .start_exec(&id, None)
                .await
                .map_err(EngineError::docker(doing()))?;
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            if let StartExecResults::Attached {
                mut output,
                mut input,
            } = started
            {
                let stdin = exec.stdin.clone();
                // A command that does not read its input closes it; that is its own business.
                let feed = tokio::spawn(async move {
                    let _ = input.write_all(&stdin).await;
                    let _ = input.shutdown().await;
                });
                while let Some(piece) = output
                    .try_next()
                    .await
                    .map_err(EngineError::docker(doing()))?
                {
                    match piece {
                        LogOutput::StdErr { message } => stderr.extend_from_slice(&message),
                        LogOutput::StdOut { message } | LogOutput::Console { message } => {
                            stdout.extend_from_slice(&message);
                        }
                        LogOutput::StdIn { .. } => {}
                    }
                }
                feed.abort();
            }
            let ended = self
                .client
                .inspect_exec(&id)
                .await
                .map_err(EngineError::docker(doing()))?;
            let code = ended
                .exit_code
                .ok_or_else(|| EngineError::NotRunning(instance.to_string()))?;
            Ok(ExecOutput {
                code: i32::try_from(code).unwrap_or(-1),
                stdout,
                stderr,
            })
        };
        tokio::time::timeout(exec.timeout, run)
            .await
            .map_err(|_| EngineError::ExecTimedOut {
                command: command.clone(),
                limit: exec.timeout,
            })?
    }

    async fn stop(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError> {
        let seconds = i32::try_from(grace.as_secs().max(1)).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        match self.client.stop_container(&instance.0, Some(options)).await {
            Ok(()) => {}
            Err(error) if gone(&error) => return Ok(true),
            Err(error) => {
                return Err(EngineError::docker(format!("stop container {instance}"))(
                    error,
                ));
            }
        }
        let state = self
            .client
            .inspect_container(&instance.0, None)
            .await
            .map_err(EngineError::docker(format!("inspect container {instance}")))?
            .state;
        // 137 is what is left of a PID 1 that did not end by itself.
        let by_itself = state.and_then(|state| state.exit_code) != Some(137);
        self.remove_container(&instance.0).await?;
        Ok(by_itself)
    }

    async fn kill(&self, instance: &InstanceId) -> Result<(), EngineError> {
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        match self.client.kill_container(&instance.0, Some(options)).await {
            Ok(()) => self.ended(&instance.0).await?,
            // Not running, or not there.
            Err(ClientError::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => {}
            Err(error) => {
                return Err(EngineError::docker(format!("kill container {instance}"))(
                    error,
                ));
            }
        }
        self.remove_container(&instance.0).await
    }

    async fn delete(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        for leftover in self.leftovers().await? {
            if leftover.workspace == Some(workspace) {
                self.remove(&leftover).await?;
            }
        }
        Ok(())
    }

    async fn give_disk(&self, workspace: WorkspaceId, bytes: u64) -> Result<(), EngineError> {
        let name = volume_name(workspace);
        let old = self
            .client
            .inspect_volume(&name)
            .await
            .map_err(EngineError::docker(format!("inspect volume {name}")))?;
        self.remove_volume(&name).await?;
        let (disk, home) = self.disk(&name);
        disk.make(bytes, Uid::CODER.0).await?;
        // https://docs.docker.com/reference/cli/docker/volume/create/#driver-specific-options
        let options = [
            ("type".to_owned(), "none".to_owned()),
            ("o".to_owned(), "bind".to_owned()),
            ("device".to_owned(), home.display().to_string()),
        ];
        let volume = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(old.labels),
            driver_opts: Some(options.into()),
            ..Default::default()
        };
        self.client
            .create_volume(volume)
            .await
            .map(drop)
            .map_err(EngineError::docker(format!("create volume {name}")))
    }

    async fn lose_power(
        &self,
        workspace: WorkspaceId,
        instance: &InstanceId,
    ) -> Result<(), EngineError> {
        let (disk, _) = self.disk(&volume_name(workspace));
        disk.freeze().await?;
        self.kill(instance).await?;
        disk.thaw().await
    }

    async fn leftovers(&self) -> Result<Vec<Leftover>, EngineError> {
        let mut found = Vec::new();
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&Self::filter())
            .build();
        let containers = self
            .client
            .list_containers(Some(options))
            .await
            .map_err(EngineError::docker("list containers"))?;
        found.extend(containers.into_iter().filter_map(|container| {
            let name = container.names?.into_iter().next()?;
            let name = name.trim_start_matches('/').to_owned();
            let labels = read_labels(container.labels.as_ref());
            Some(Leftover::new(LeftoverKind::Instance, name, labels))
        }));
        found.extend(self.routes.leftovers()?);
        let options = ListVolumesOptionsBuilder::new()
            .filters(&Self::filter())
            .build();
        let volumes = self
            .client
            .list_volumes(Some(options))
            .await
            .map_err(EngineError::docker("list volumes"))?;
        found.extend(volumes.volumes.into_iter().flatten().map(|volume| {
            let labels = read_labels(Some(&volume.labels));
            Leftover::new(LeftoverKind::Volume, volume.name, labels)
        }));
        found.sort_by_key(|leftover| leftover.kind);
        Ok(found)
    }

    async fn remove(&self, leftover: &Leftover) -> Result<(), EngineError> {
        match leftover.kind {
            LeftoverKind::Instance => self.remove_container(&leftover.name).await,
            LeftoverKind::Route => self.routes.remove(&leftover.name),
            LeftoverKind::Volume => self.remove_whole_volume(&leftover.name).await,
        }
    }
}
