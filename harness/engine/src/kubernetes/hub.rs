//! What a run has in the cluster beside its workspaces: the gateway's pod, its service, the policies, and a trial of whether
//! the cluster's network enforces them.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, LogParams, PostParams};
use reprise_gateway::far::{DEPOT_PORT, Dial, Opening, SHUT_PORT, Stream, WIRE_PORT};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::OnceCell;

use super::attached::Attached;
use super::objects::{self, GATEWAY_DIR, Ports};
use super::pods::Pods;
use super::{cluster, depot};
use crate::{EngineError, Maker, Mount, Progress};

pub(super) const PORTS: Ports = Ports {
    wire: WIRE_PORT,
    depot: DEPOT_PORT,
    shut: SHUT_PORT,
};

/// The command that leads its input and output to the gateway's socket.
const PIPE: [&str; 4] = ["/reprise", "gateway", "pipe", GATEWAY_DIR];

/// How long the gateway's pod may take to come up, and the trial to end.
const TRIAL: Duration = Duration::from_secs(240);

/// What a workspace's network lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Walls {
    /// The gateway is reached.
    open: bool,
    /// What a policy refuses is reached all the same.
    shut: bool,
}

/// A run's gateway in the cluster.
#[derive(Debug)]
pub(super) struct Hub {
    pods: Pods,
    pod: String,
    address: IpAddr,
    walls: Walls,
    kept: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
}

impl Hub {
    /// Makes it, and tries the cluster's network.
    pub(super) async fn make(
        pods: &Pods,
        maker: &Maker,
        program_image: &str,
        progress: Progress<'_>,
    ) -> Result<Self, EngineError> {
        let (client, namespace) = (&pods.client, &pods.namespace);
        let params = PostParams::default();
        progress("starting the gateway's pod");
        // Before the pods they are for: there is no moment without them.
        let api: Api<NetworkPolicy> = Api::namespaced(client.clone(), namespace);
        for policy in objects::policies(maker, &PORTS) {
            cluster::create("create the network policies", || {
                api.create(&params, &policy)
            })
            .await?;
        }
        let services: Api<Service> = Api::namespaced(client.clone(), namespace);
        let service = objects::service(maker, &PORTS);
        cluster::create("create the gateway's service", || {
            services.create(&params, &service)
        })
        .await?;
        let pod = objects::run_name(maker.run);
        let gateway = objects::gateway(maker, program_image);
        let api = pods.api();
        cluster::create("create the gateway's pod", || api.create(&params, &gateway)).await?;
        let service = cluster::ask("look at the gateway's service", || services.get(&pod)).await?;
        let address = service
            .spec
            .and_then(|spec| spec.cluster_ip)
            .and_then(|ip| ip.parse().ok())
            .ok_or_else(|| {
                EngineError::NotStarted(format!("service {pod} was given no address"))
            })?;
        let mut hub = Self {
            pods: pods.clone(),
            pod,
            address,
            walls: Walls {
                open: false,
                shut: false,
            },
            kept: Mutex::default(),
        };
        progress("trying what the cluster's network lets through");
        // At once: the trial waits for the gateway.
        let (walls, ()) = tokio::try_join!(
            hub.try_walls(maker, program_image),
            pods.runs(&hub.pod, 0, None)
        )?;
        hub.walls = walls;
        if hub.walls.shut {
            progress(
                "network policies are not enforced in this cluster: workspaces could reach more than their gateway",
            );
        }
        Ok(hub)
    }

    /// Tries from a pod with a workspace's labels.
    async fn try_walls(&self, maker: &Maker, image: &str) -> Result<Walls, EngineError> {
        let url = |port| format!("http://{}", SocketAddr::new(self.address, port));
        let trial = objects::trial(maker, image, &url(DEPOT_PORT), &url(SHUT_PORT));
        let name = objects::trial_name(maker.run);
        let api = self.pods.api();
        let params = PostParams::default();
        cluster::create("create the trial's pod", || api.create(&params, &trial)).await?;
        let code = self.pods.ended(&name, TRIAL).await;
        let said = api.logs(&name, &LogParams::default()).await;
        remove_pod(&api, &name, 0).await?;
        let code = code?;
        let said = said.map_err(EngineError::kubernetes("read the trial's log"))?;
        match serde_json::from_str(&said) {
            Ok(Walls { open: true, shut }) if code == Some(0) => Ok(Walls { open: true, shut }),
            _ => Err(EngineError::NotStarted(format!(
                "a pod does not reach the gateway's service at {}: {}",
                url(DEPOT_PORT),
                said.trim()
            ))),
        }
    }

    /// A word on what workspaces can reach, as it was tried.
    pub(super) fn isolation(&self) -> &'static str {
        if self.walls.shut {
            "network policies NOT enforced"
        } else {
            "network policies enforced"
        }
    }

    pub(super) fn depot(&self) -> String {
        format!("http://{}", SocketAddr::new(self.address, DEPOT_PORT))
    }

    pub(super) fn wire(&self) -> String {
        SocketAddr::new(self.address, WIRE_PORT).to_string()
    }

    /// A way to the gateway's socket.
    pub(super) fn dial(&self) -> Arc<dyn Dial> {
        Arc::new(ByExec {
            pods: self.pods.api(),
            pod: self.pod.clone(),
        })
    }

    /// Hands a mount to the gateway, once for all starts of the run.
    pub(super) async fn keep(&self, key: &str, mount: &Mount) -> Result<(), EngineError> {
        let cell = Arc::clone(
            self.kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(key.to_owned())
                .or_default(),
        );
        cell.get_or_try_init(|| async {
            let file = depot::archive(mount).await?;
            let bytes = file
                .metadata()
                .await
                .map_err(EngineError::io("read", &mount.source))?
                .len();
            self.put(key, bytes, file).await
        })
        .await
        .copied()
    }

    /// Hands bytes to the gateway.
    pub(super) async fn put(
        &self,
        name: &str,
        bytes: u64,
        mut content: impl tokio::io::AsyncRead + Unpin,
    ) -> Result<(), EngineError> {
        let opening = Opening::Put {
            name: name.to_owned(),
            bytes,
        };
        let failed = |error: io::Error| {
            EngineError::NotStarted(format!(
                "{name} could not be handed to pod {}: {error}",
                self.pod
            ))
        };
        let mut line = serde_json::to_vec(&opening).expect("an opening is JSON");
        line.push(b'\n');
        let mut pipe = self.dial().dial().await.map_err(failed)?;
        let sent = async {
            pipe.write_all(&line).await?;
            tokio::io::copy(&mut content, &mut pipe).await?;
            pipe.flush().await?;
            let mut kept = [0; 5];
            pipe.read_exact(&mut kept).await?;
            Ok(())
        };
        sent.await.map_err(failed)
    }
}

/// Deletes a pod, with so many seconds' grace.
pub(super) async fn remove_pod(api: &Api<Pod>, name: &str, grace: u32) -> Result<(), EngineError> {
    let params = DeleteParams::default().grace_period(grace);
    cluster::delete(api, "pod", name, &params).await
}

/// Reaches the gateway's socket by a command in its pod.
struct ByExec {
    pods: Api<Pod>,
    pod: String,
}

#[async_trait]
impl Dial for ByExec {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        let attached = Attached::run(&self.pods, &self.pod, &PIPE)
            .await
            .map_err(io::Error::other)?;
        Ok(Box::new(attached.into_stream()))
    }
}

/// Where the host's socket lies below its directory.
#[must_use]
pub fn host_socket(dir: &std::path::Path) -> PathBuf {
    dir.join("host.sock")
}
