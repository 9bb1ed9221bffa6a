//! Pods of a cluster, through kube-rs.
//!
//! A workspace is a PersistentVolumeClaim keyed by its id and, for each start, a new pod on it, which is what Coder's
//! Kubernetes templates do. An init container puts this program into the pod, so that any image will do. The run's gateway
//! answers in a pod of its own; PID 1 forwards the workspace's loopback to it, and network policies keep the workspace from
//! everything else.

mod access;
mod attached;
mod cluster;
mod depot;
mod endings;
mod hub;
mod logs;
mod manifests;
mod objects;
mod pods;
mod removal;
mod shape;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use reprise_model::{EngineKind, Errand, InstanceId, RunId, WorkspaceId};
use tokio::sync::{OnceCell, mpsc};
use uuid::Uuid;

use attached::{AttachError, Attached};
pub use cluster::Place;
use hub::Hub;
pub use hub::host_socket;
use objects::Furnishing;
use pods::{Pods, Seen};
pub use shape::Shape;

use crate::{
    Door, Engine, EngineError, Exec, ExecOutput, Labels, Leftover, Maker, Missing, Progress, Route,
    StartSpec, Started, TOOLS_DIR, images,
};

/// How long the API server may take to remove what has ended.
const REMOVAL: Duration = Duration::from_secs(60);

/// The Kubernetes engine.
#[derive(Debug)]
pub struct Kubernetes {
    pods: Pods,
    shape: Shape,
    maker: Maker,
    calls: Arc<AtomicU64>,
    program: PathBuf,
    program_image: String,
    hub: OnceCell<Hub>,
    /// Whether the run may have something in the cluster.
    begun: AtomicBool,
    /// A command of this machine that starts the kubelet of the workspaces' node again.
    restart_kubelet: Option<String>,
}

/// An instance's pod, and how often its container had been started again.
fn parts(instance: &InstanceId) -> (&str, i32) {
    let (pod, again) = match instance.0.split_once('@') {
        Some((pod, again)) => (pod, again.parse().unwrap_or(0)),
        None => (instance.0.as_str(), 0),
    };
    (pod.split('+').next().unwrap_or(pod), again)
}

impl Kubernetes {
    /// Connects to the cluster of the user's kubeconfig. `program` is this program, static; what is made belongs to `run`.
    ///
    /// # Errors
    /// If there is no cluster or it does not answer.
    pub async fn connect(
        place: &Place,
        shape: Shape,
        program: PathBuf,
        run: RunId,
    ) -> Result<Self, Missing> {
        let calls = Arc::default();
        let (client, namespace) = cluster::connect(place, &calls).await?;
        let image = images::program_image(&program).map_err(|error| Missing {
            what: format!("this program has no image: {error}"),
            remedy: "start it by its path".to_owned(),
        })?;
        Ok(Self {
            pods: Pods {
                client,
                namespace,
                patience: shape.patience,
            },
            program_image: images::in_registry(shape.registry.as_deref(), &image),
            shape,
            maker: Maker::this(run),
            calls,
            program,
            hub: OnceCell::new(),
            begun: AtomicBool::new(false),
            restart_kubelet: std::env::var("REPRISE_RESTART_KUBELET").ok(),
        })
    }

    /// How many requests it has sent to the API server.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The namespace it works in.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.pods.namespace
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        <K as Resource>::DynamicType: Default,
    {
        Api::namespaced(self.pods.client.clone(), &self.pods.namespace)
    }

    async fn hub(&self, progress: Progress<'_>) -> Result<&Hub, EngineError> {
        self.begun.store(true, Ordering::SeqCst);
        self.hub
            .get_or_try_init(|| Hub::make(&self.pods, &self.maker, &self.program_image, progress))
            .await
    }

    /// The labels with this run as the maker: policies go by it.
    fn own(&self, labels: &Labels) -> Labels {
        Labels {
            maker: self.maker.clone(),
            workspace: labels.workspace,
        }
    }

    /// Follows what a pod's container writes from its `again`-th start again on.
    fn lines(&self, pod: &str, again: i32) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel(256);
        tokio::spawn(logs::follow(self.pods.api(), pod.to_owned(), again, sender));
        lines
    }
}

/// A new name at each start, or the workspace's own as a StatefulSet would give it.
fn pod_name(spec: &StartSpec) -> String {
    if spec.same_name {
        format!("reprise-{}-0", spec.labels.workspace)
    } else {
        format!("reprise-{}", Uuid::new_v4())
    }
}

#[async_trait]
impl Engine for Kubernetes {
    fn kind(&self) -> EngineKind {
        EngineKind::Kubernetes
    }

    async fn version(&self) -> Result<String, EngineError> {
        let server = cluster::ask("ask for the version", || {
            self.pods.client.apiserver_version()
        })
        .await?;
        Ok(match self.hub.get() {
            Some(hub) => format!("Kubernetes {}, {}", server.git_version, hub.isolation()),
            None => format!("Kubernetes {}", server.git_version),
        })
    }

    async fn prepare(&self, progress: Progress<'_>) -> Result<(), EngineError> {
        self.hub(progress).await.map(drop)
    }

    async fn create(&self, labels: &Labels, port: Option<u16>) -> Result<Route, EngineError> {
        let hub = self.hub(&|_| ()).await?;
        let claim = objects::claim(&self.own(labels), &self.shape);
        let api: Api<PersistentVolumeClaim> = self.api();
        let params = PostParams::default();
        cluster::create("create a volume claim", || api.create(&params, &claim)).await?;
        Ok(Route {
            address: Route::address(port),
            door: Some(Door::Far(hub.dial())),
        })
    }

    async fn start(&self, spec: &StartSpec) -> Result<Started, EngineError> {
        let hub = self.hub(&|_| ()).await?;
        let name = pod_name(spec);
        let packed = depot::pack(&self.program, &spec.mounts, &spec.files)?;
        let own = format!("start-{}", Uuid::new_v4());
        let mut keys: Vec<String> = packed.shared.keys().cloned().collect();
        keys.push(own.clone());
        let furnishing = Furnishing {
            workspace_image: images::in_registry(
                self.shape.registry.as_deref(),
                &images::workspace_image(),
            ),
            program_image: self.program_image.clone(),
            depot: hub.depot(),
            names: packed.names,
            keys,
            gateway: hub.wire(),
        };
        let mut spec = spec.clone();
        spec.labels = self.own(&spec.labels);
        let pod = objects::workspace(&name, &spec, &self.shape, &furnishing);
        let api = self.pods.api();
        let params = PostParams::default();
        let claim = objects::claim_name(spec.labels.workspace);
        let started = async {
            // What it fetches is handed over while it is placed.
            let handing = async {
                for (key, mount) in &packed.shared {
                    hub.keep(key, mount).await?;
                }
                hub.put(&own, packed.own.len() as u64, packed.own.as_slice())
                    .await
            };
            let coming = async {
                cluster::create("create a workspace's pod", || api.create(&params, &pod)).await?;
                self.pods.runs(&name, 0, Some(&claim)).await
            };
            tokio::try_join!(handing, coming)
        };
        if let Err(error) = started.await {
            self.remove_pod_and_wait(&name, 0).await?;
            return Err(error);
        }
        let lines = self.lines(&name, 0);
        let instance = if spec.same_name {
            // The name is the old one; the pod is not.
            let pod = cluster::ask(&format!("look at pod {name}"), || api.get(&name)).await?;
            InstanceId(format!("{name}+{}", pod.uid().unwrap_or_default()))
        } else {
            InstanceId(name)
        };
        Ok(Started {
            lines,
            instance,
            door: None,
        })
    }

    async fn exec(&self, instance: &InstanceId, exec: &Exec) -> Result<ExecOutput, EngineError> {
        let command = exec.argv.join(" ");
        let (pod, _) = parts(instance);
        let errand = Errand {
            argv: exec.argv.clone(),
            env: exec.env.clone(),
            cwd: exec.cwd.as_ref().map(|dir| dir.display().to_string()),
            input: exec.stdin.len() as u64,
        };
        let mut input = serde_json::to_vec(&errand).expect("an errand is JSON");
        input.push(b'\n');
        input.extend_from_slice(&exec.stdin);
        let program = format!("{TOOLS_DIR}/reprise");
        let run = async {
            let argv = [program.as_str(), "workspace-agent", "errand"];
            let ran = Attached::run_to_end(&self.pods.api(), pod, &argv, &input).await;
            let left = match ran {
                Ok(left) => left,
                Err(AttachError::Io(error)) => return Err(EngineError::io("talk to", pod)(error)),
                Err(AttachError::Client(error)) => {
                    return Err(match self.pods.now(pod).await? {
                        Seen::Running(_) => {
                            EngineError::kubernetes(format!("run `{command}` in pod {pod}"))(error)
                        }
                        _ => EngineError::NotRunning(instance.to_string()),
                    });
                }
            };
            let broke = |reason: String| EngineError::Broken {
                command: command.clone(),
                reason,
            };
            match (left.code, left.trouble) {
                (Some(code), _) => Ok(ExecOutput {
                    code,
                    stdout: left.stdout,
                    stderr: left.stderr,
                }),
                (None, trouble) => Err(match self.pods.now(pod).await? {
                    Seen::Running(_) => broke(trouble.unwrap_or_default()),
                    _ => EngineError::NotRunning(instance.to_string()),
                }),
            }
        };
        tokio::time::timeout(exec.timeout, run)
            .await
            .map_err(|_| EngineError::ExecTimedOut {
                command: command.clone(),
                limit: exec.timeout,
            })?
    }

    async fn stop(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError> {
        let (pod, _) = parts(instance);
        self.end_within(pod, grace, |seconds| async move {
            hub::remove_pod(&self.pods.api(), pod, seconds).await
        })
        .await
    }

    async fn kill(&self, instance: &InstanceId) -> Result<(), EngineError> {
        self.crash(instance, false).await
    }

    async fn delete(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        for leftover in self.find(Some(workspace)).await? {
            self.remove(&leftover).await?;
        }
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<Leftover>, EngineError> {
        self.find(None).await
    }

    async fn remove(&self, leftover: &Leftover) -> Result<(), EngineError> {
        let (kind, name) = leftover
            .name
            .split_once('/')
            .unwrap_or(("", &leftover.name));
        match kind {
            // What still runs is ended and not only forgotten: with no grace at all the API forgets a pod whose processes
            // are still there.
            "pod" => self.remove_pod_and_wait(name, 1).await,
            "service" => self.remove_object::<Service>(kind, name).await,
            "networkpolicy" => self.remove_object::<NetworkPolicy>(kind, name).await,
            "poddisruptionbudget" => self.remove_object::<PodDisruptionBudget>(kind, name).await,
            _ => self.remove_claim(name).await,
        }
    }

    async fn close(&self) -> Result<(), EngineError> {
        if !self.begun.load(Ordering::SeqCst) {
            return Ok(());
        }
        let of_run = self.leftovers().await?.into_iter().filter(|leftover| {
            let maker = leftover.maker.as_ref();
            leftover.workspace.is_none() && maker.is_some_and(|maker| maker.run == self.maker.run)
        });
        let removing = of_run.map(|leftover| async move { self.remove(&leftover).await });
        try_join_all(removing).await.map(drop)
    }

    fn lacks(&self, power: crate::Power) -> Option<Missing> {
        self.lacking(power)
    }

    async fn evict(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError> {
        self.evict_pod(instance, grace).await
    }

    async fn kill_container(&self, instance: &InstanceId) -> Result<bool, EngineError> {
        let (pod, _) = parts(instance);
        self.tell_agent(pod, &[]).await?;
        Ok(true)
    }

    async fn started_again(&self, instance: &InstanceId) -> Result<Started, EngineError> {
        let (pod, times) = parts(instance);
        let again = times + 1;
        self.pods.runs(pod, again, None).await?;
        Ok(Started {
            instance: InstanceId(format!("{pod}@{again}")),
            lines: self.lines(pod, again),
            door: None,
        })
    }

    async fn exhaust_memory(&self, instance: &InstanceId) -> Result<(), EngineError> {
        self.crash(instance, true).await
    }

    async fn restart_node_agent(&self) -> Result<(), EngineError> {
        self.restart_kubelet().await
    }

    async fn grow_volume(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        self.grow_claim(workspace).await
    }
}
