//! Where things are on this machine.

use std::path::PathBuf;
use std::sync::Arc;

use reprise_engine::docker::Docker;
use reprise_engine::kubernetes::{Kubernetes, Place, Shape};
use reprise_engine::sandbox::Sandbox;
use reprise_engine::{Engine, Missing};
use reprise_model::{EngineKind, RunId};

use super::measuring::ClusterArgs;
use super::{Exit, Failure};

/// The user's state: `REPRISE_STATE`, or `reprise` in the user's state directory.
pub(super) fn state() -> PathBuf {
    std::env::var_os("REPRISE_STATE").map_or_else(
        || {
            dirs::state_dir()
                .or_else(dirs::data_local_dir)
                .unwrap_or_else(std::env::temp_dir)
                .join("reprise")
        },
        PathBuf::from,
    )
}

/// This program's file.
pub(super) fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::message(
            Exit::Io,
            format!("cannot find this program's own file: {error}"),
        )
    })
}

pub(super) fn sandbox() -> Result<Sandbox, Failure> {
    Ok(Sandbox::new(program()?, state().join("sandbox")))
}

pub(super) async fn docker() -> Result<Docker, Missing> {
    Docker::connect(state().join("docker")).await
}

/// How workspaces look in a cluster.
pub(super) fn shape(args: &ClusterArgs) -> Shape {
    let usual = Shape::default();
    Shape {
        storage_class: args.storage_class.clone(),
        storage: args.storage_size.clone().unwrap_or(usual.storage),
        registry: args.image_registry.clone(),
        ..usual
    }
}

/// The cluster's engine; what it makes belongs to `run`.
pub(super) async fn kubernetes(args: &ClusterArgs, run: RunId) -> Result<Kubernetes, Failure> {
    let place = Place {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        namespace: args.namespace.clone(),
    };
    Kubernetes::connect(&place, shape(args), program()?, run)
        .await
        .map_err(|missing| Failure::message(Exit::Unavailable, missing))
}

/// The engine asked for, or the best there is.
pub(super) async fn engine(
    wanted: Option<EngineKind>,
    cluster: &ClusterArgs,
    run: RunId,
) -> Result<Arc<dyn Engine>, Failure> {
    let unavailable = |missing: Missing| Failure::message(Exit::Unavailable, missing);
    match wanted {
        Some(EngineKind::Docker) => Ok(Arc::new(docker().await.map_err(unavailable)?)),
        Some(EngineKind::Kubernetes) => Ok(Arc::new(kubernetes(cluster, run).await?)),
        Some(EngineKind::Sandbox) => {
            Sandbox::check().map_err(unavailable)?;
            Ok(Arc::new(sandbox()?))
        }
        None => {
            if let Ok(docker) = docker().await {
                return Ok(Arc::new(docker));
            }
            Sandbox::check().map_err(unavailable)?;
            Ok(Arc::new(sandbox()?))
        }
    }
}

/// The runtime of one command.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Runtime::new()
        .map_err(|error| Failure::message(Exit::Io, format!("cannot start threads: {error}")))
}
