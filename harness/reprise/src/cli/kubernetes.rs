//! `reprise kubernetes manifests`: what a run would create in a cluster, for review. Nothing is asked of the cluster.

use std::collections::BTreeMap;

use reprise_engine::kubernetes::Kubernetes;
use reprise_engine::{Labels, Maker, StartSpec, images, init_command};
use reprise_model::{RunId, WorkspaceId};

use super::args::KubernetesCommand;
use super::measuring::ClusterArgs;
use super::{Exit, Failure, places};
use crate::workspace::{HOME, with_causes};

pub(super) fn main(command: &KubernetesCommand) -> Result<Exit, Failure> {
    match command {
        KubernetesCommand::Manifests(cluster) => manifests(cluster),
    }
}

fn manifests(cluster: &ClusterArgs) -> Result<Exit, Failure> {
    let shape = places::shape(cluster);
    let image = images::program_image(&places::program()?)
        .map_err(|error| Failure::message(Exit::Io, with_causes(&error)))?;
    let image = images::in_registry(shape.registry.as_deref(), &image);
    let maker = Maker::this(RunId::draw());
    let spec = StartSpec {
        labels: Labels {
            maker: maker.clone(),
            workspace: WorkspaceId::draw(),
        },
        hostname: "workspace".to_owned(),
        gateway: ([127, 0, 0, 1], 8377).into(),
        home: HOME.into(),
        init: init_command(),
        env: BTreeMap::from([("HOME".to_owned(), HOME.to_owned())]),
        mounts: Vec::new(),
        files: Vec::new(),
        in_place: false,
        same_name: false,
    };
    for object in Kubernetes::manifests(&image, &shape, &maker, &spec) {
        let text = serde_yaml::to_string(&object).map_err(|error| {
            Failure::message(Exit::Io, format!("an object cannot be printed: {error}"))
        })?;
        print!("---\n{text}");
    }
    Ok(Exit::Pass)
}
