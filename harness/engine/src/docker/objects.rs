//! Docker's objects: how they are named and labelled, made and removed.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error as ClientError;
use bollard::models::{ContainerCreateBody, HostConfig, Mount as ClientMount, MountType};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptions,
    UploadToContainerOptionsBuilder, WaitContainerOptions,
};
use futures::StreamExt;
use reprise_model::WorkspaceId;

use super::{Docker, routes};
use crate::images::workspace_image;
use crate::{EngineError, Labels, START_FILES, StartSpec, USER};

/// The label that holds an object's [`Labels`] as JSON; whoever has it is Reprise's.
pub(super) const LABEL: &str = "dev.reprise.labels";

impl Docker {
    pub(super) async fn create_container(
        &self,
        name: &str,
        spec: &StartSpec,
    ) -> Result<(), EngineError> {
        let workspace = spec.labels.workspace;
        let mut mounts = vec![ClientMount {
            target: Some(spec.home.display().to_string()),
            source: Some(volume_name(workspace)),
            typ: Some(MountType::VOLUME),
            ..Default::default()
        }];
        mounts.extend(spec.mounts.iter().map(|mount| ClientMount {
            target: Some(mount.target.display().to_string()),
            source: Some(mount.source.display().to_string()),
            typ: Some(MountType::BIND),
            read_only: Some(true),
            ..Default::default()
        }));
        mounts.push(ClientMount {
            target: Some(routes::INSIDE.to_owned()),
            source: Some(self.routes.door_dir(workspace).display().to_string()),
            typ: Some(MountType::BIND),
            read_only: Some(true),
            ..Default::default()
        });
        let (program, args) = spec
            .init
            .split_first()
            .ok_or_else(|| EngineError::NotStarted("no program for PID 1 was named".to_owned()))?;
        let body = ContainerCreateBody {
            hostname: Some(spec.hostname.clone()),
            user: Some(USER.to_owned()),
            image: Some(workspace_image()),
            entrypoint: Some(vec![program.clone()]),
            cmd: Some([args, &routes::forwarding(spec.gateway)].concat()),
            env: Some(
                spec.env
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect(),
            ),
            working_dir: Some(spec.home.display().to_string()),
            labels: Some(labels(&spec.labels)),
            host_config: Some(HostConfig {
                mounts: Some(mounts),
                network_mode: Some("none".to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        self.client
            .create_container(Some(options), body)
            .await
            .map_err(EngineError::docker(format!("create container {name}")))?;
        Ok(())
    }

    pub(super) async fn inject(&self, name: &str, spec: &StartSpec) -> Result<(), EngineError> {
        let mut tar = tar::Builder::new(Vec::new());
        for file in &spec.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(file.content.len() as u64);
            header.set_mode(0o644);
            let path = format!("{}/{}", START_FILES.trim_start_matches('/'), file.name);
            tar.append_data(&mut header, path, file.content.as_bytes())
                .map_err(EngineError::io("pack", &file.name))?;
        }
        let tar = tar.into_inner().map_err(EngineError::io("pack", name))?;
        let options = UploadToContainerOptionsBuilder::new().path("/").build();
        self.client
            .upload_to_container(name, Some(options), bollard::body_full(tar.into()))
            .await
            .map_err(EngineError::docker(format!(
                "write files into container {name}"
            )))
    }

    pub(super) async fn remove_container(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).build();
        match self.client.remove_container(name, Some(options)).await {
            Ok(()) => Ok(()),
            Err(error) if gone(&error) => Ok(()),
            Err(ClientError::DockerResponseServerError {
                status_code: 409, ..
            }) => self.removed(name).await,
            Err(error) => Err(EngineError::docker(format!("remove container {name}"))(
                error,
            )),
        }
    }

    /// Somebody else is removing it; waits until it is gone.
    pub(super) async fn removed(&self, name: &str) -> Result<(), EngineError> {
        let gone = async {
            while self.client.inspect_container(name, None).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone)
            .await
            .map_err(|_| {
                EngineError::NotStarted(format!("container {name} is still being removed"))
            })
    }

    /// Waits for the end of a container that was told to end.
    pub(super) async fn ended(&self, name: &str) -> Result<(), EngineError> {
        let mut ends = self
            .client
            .wait_container(name, None::<WaitContainerOptions>);
        match ends.next().await {
            // A bad exit code comes as an error.
            None | Some(Ok(_) | Err(ClientError::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) if gone(&error) => Ok(()),
            Some(Err(error)) => Err(EngineError::docker(format!("wait for container {name}"))(
                error,
            )),
        }
    }

    pub(super) async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        match self
            .client
            .remove_volume(name, None::<RemoveVolumeOptions>)
            .await
        {
            Err(error) if !gone(&error) => {
                Err(EngineError::docker(format!("remove volume {name}"))(error))
            }
            _ => Ok(()),
        }
    }
}

/// The name of a workspace's volume.
pub(super) fn volume_name(workspace: WorkspaceId) -> String {
    format!("reprise-{workspace}")
}

pub(super) fn labels(labels: &Labels) -> HashMap<String, String> {
    let text = serde_json::to_string(labels).expect("labels are JSON");
    HashMap::from([(LABEL.to_owned(), text)])
}

pub(super) fn read_labels(labels: Option<&HashMap<String, String>>) -> Option<Labels> {
    serde_json::from_str(labels?.get(LABEL)?).ok()
}

pub(super) fn gone(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::DockerResponseServerError {
            status_code: 404,
            ..
        }
    )
}
