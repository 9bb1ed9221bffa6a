//! The ways in which Kubernetes itself ends or disturbs a workspace: a deletion, an eviction, a container that dies, a
//! kubelet that is started again, a volume that grows.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudget};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Status};
use kube::api::{Api, Patch, PatchParams, PostParams};
use reprise_model::{InstanceId, WorkspaceId};
use serde_json::json;

use super::attached::Attached;
use super::hub::remove_pod;
use super::{Kubernetes, REMOVAL, cluster, objects, parts};
use crate::{EngineError, Labels, Missing, Power, TOOLS_DIR};

/// What PID 1 leaves when the kubelet had to kill it.
const KILLED: i32 = 137;

/// How long a process may outlive what kills it.
const DEATH: Duration = Duration::from_secs(60);

/// How long the cluster may take to see to a volume's new size.
const GROWTH: Duration = Duration::from_secs(120);

impl Kubernetes {
    /// Has a pod end by `ask`, which is told the grace in seconds. Tells whether PID 1 ended by itself.
    pub(super) async fn end_within<F>(
        &self,
        pod: &str,
        grace: Duration,
        ask: impl FnOnce(u32) -> F,
    ) -> Result<bool, EngineError>
    where
        F: Future<Output = Result<(), EngineError>>,
    {
        let seconds = u32::try_from(grace.as_secs().max(1)).unwrap_or(u32::MAX);
        let began = Instant::now();
        // The watch looks first, so that the exit code is seen even of a pod that is gone at once.
        let (code, ()) = tokio::try_join!(self.pods.gone(pod, grace + REMOVAL), ask(seconds))?;
        Ok(match code {
            Some(code) => code != KILLED,
            // It went unseen; one that had to be killed takes all of its grace.
            None => began.elapsed() < grace,
        })
    }

    pub(super) async fn tell_agent(&self, pod: &str, argument: &[&str]) -> Result<(), EngineError> {
        let program = format!("{TOOLS_DIR}/reprise");
        let argv = [&[program.as_str(), "workspace-agent", "crash"], argument].concat();
        let attached = Attached::run(&self.pods.api(), pod, &argv)
            .await
            .map_err(EngineError::kubernetes(format!("end pod {pod}")))?;
        // It is cut off by what it asks for.
        let _ = attached.finish(&[]).await;
        Ok(())
    }

    /// Ends every process of an instance at once. No deletion does that: even one without grace sends SIGTERM first and
    /// gives two seconds. PID 1 ends itself instead, and the kernel kills the rest.
    pub(super) async fn crash(
        &self,
        instance: &InstanceId,
        by_memory: bool,
    ) -> Result<(), EngineError> {
        let (pod, _) = parts(instance);
        let argument: &[&str] = if by_memory { &["--by-memory"] } else { &[] };
        // One that does not run has no processes.
        if matches!(self.pods.now(pod).await?, super::Seen::Running(_)) {
            self.tell_agent(pod, argument).await?;
            self.pods.ended(pod, DEATH).await?;
        }
        remove_pod(&self.pods.api(), pod, 0).await?;
        self.pods.gone(pod, REMOVAL).await.map(drop)
    }

    /// Evicts a pod, as draining its node does, under a disruption budget that lets one go at a time.
    pub(super) async fn evict_pod(
        &self,
        instance: &InstanceId,
        grace: Duration,
    ) -> Result<bool, EngineError> {
        let (pod, _) = parts(instance);
        let api = self.pods.api();
        let found = cluster::ask(&format!("look at pod {pod}"), || api.get(pod)).await?;
        let (_, workspace) = objects::read(&found.metadata);
        let budgets: Api<PodDisruptionBudget> = self.api();
        if let Some(workspace) = workspace {
            let budget = objects::budget(&Labels {
                maker: self.maker.clone(),
                workspace,
            });
            let params = PostParams::default();
            cluster::create("create a disruption budget", || {
                budgets.create(&params, &budget)
            })
            .await?;
        }
        self.end_within(pod, grace, |seconds| async move {
            let eviction = Eviction {
                metadata: ObjectMeta {
                    name: Some(pod.to_owned()),
                    ..Default::default()
                },
                delete_options: Some(DeleteOptions {
                    grace_period_seconds: Some(i64::from(seconds)),
                    ..Default::default()
                }),
            };
            // 429 says that the budget does not allow it yet, and is asked again.
            cluster::ask(&format!("evict pod {pod}"), || async {
                let params = PostParams::default();
                let evicted: Result<Status, _> = self
                    .pods
                    .api()
                    .create_subresource("eviction", pod, &params, &eviction)
                    .await;
                match evicted {
                    Err(error) if cluster::gone(&error) => Ok(()),
                    other => other.map(drop),
                }
            })
            .await
        })
        .await
    }

    pub(super) fn lacking(&self, power: Power) -> Option<Missing> {
        match power {
            Power::RestartNodeAgent if self.restart_kubelet.is_none() => Some(Missing {
                what: "nobody here can start the node's kubelet again".to_owned(),
                remedy: "with a cluster of ci/cluster, set REPRISE_RESTART_KUBELET to `ci/cluster restart-kubelet`"
                    .to_owned(),
            }),
            Power::RestartNodeAgent | Power::GrowVolume => None,
            Power::OwnDisk => Some(Missing {
                what: "the node of a cluster is not this program's to cut off".to_owned(),
                remedy: "use --engine sandbox or docker, as root".to_owned(),
            }),
        }
    }

    pub(super) async fn restart_kubelet(&self) -> Result<(), EngineError> {
        let command = self.restart_kubelet.as_deref().unwrap_or_default();
        let failed = |reason: String| EngineError::Exec {
            command: command.to_owned(),
            reason,
        };
        let output = tokio::process::Command::new("sh")
            .args(["-c", command])
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    }

    /// Asks for a volume half as large again, and waits until it is.
    pub(super) async fn grow_claim(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        let name = objects::claim_name(workspace);
        let api: Api<PersistentVolumeClaim> = self.api();
        let size = larger(&self.shape.storage).ok_or_else(|| {
            EngineError::NotStarted(format!(
                "`{}` is no size that could grow",
                self.shape.storage
            ))
        })?;
        let patch = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        cluster::ask(&format!("grow volume claim {name} to {size}"), || {
            api.patch(&name, &params, &patch)
        })
        .await?;
        let grown = async {
            loop {
                let claim = cluster::ask("look at a volume claim", || api.get(&name)).await?;
                let has = claim
                    .status
                    .and_then(|status| status.capacity)
                    .unwrap_or_default();
                if has == BTreeMap::from([("storage".to_owned(), Quantity(size.clone()))]) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        match tokio::time::timeout(GROWTH, grown).await {
            Ok(grown) => grown,
            Err(_) => {
                let said = cluster::events(&self.pods.client, &self.pods.namespace, &name).await;
                Err(EngineError::NotStarted(format!(
                    "volume claim {name} did not grow to {size} within {} s: {said}",
                    GROWTH.as_secs()
                )))
            }
        }
    }
}

/// A size such as `1Gi`, half as large again.
fn larger(size: &str) -> Option<String> {
    let end = size
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(size.len());
    let (number, unit) = size.split_at(end);
    let number: u64 = number.parse().ok()?;
    let unit = match unit {
        "Ki" => "",
        "Mi" => "Ki",
        "Gi" => "Mi",
        "Ti" => "Gi",
        _ => return None,
    };
    Some(format!("{}{unit}", number * 1536))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_grows_by_half() {
        assert_eq!(larger("1Gi").as_deref(), Some("1536Mi"));
        assert_eq!(larger("400Mi").as_deref(), Some("614400Ki"));
        assert_eq!(larger("big"), None);
    }
}
