//! Waiting for pods: until one runs, until its container ends, until it is gone.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::{self, watch_object};

use super::cluster;
use super::objects::MAIN;
use crate::EngineError;

/// Why a container that waits will not start by waiting (<https://kubernetes.io/docs/concepts/containers/images/#imagepullbackoff>).
const HOPELESS: [&str; 6] = [
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// What one look at a pod tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Its container runs, for the n-th time again.
    Running(i32),
    /// It is on its way.
    Coming,
    /// No node takes it, at present.
    NoPlace(String),
    /// It will not run.
    Hopeless(String),
    /// Its container has ended with this code.
    Ended(i32),
    /// It is not there.
    Gone,
}

pub(super) fn main_container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status
        .as_ref()?
        .container_statuses
        .as_ref()?
        .iter()
        .find(|container| container.name == MAIN)
}

/// Looks at a pod.
pub(super) fn look(pod: Option<&Pod>) -> Seen {
    let Some(pod) = pod else {
        return Seen::Gone;
    };
    let main = main_container(pod);
    let state = main.and_then(|container| container.state.as_ref());
    if let Some(ended) = state.and_then(|state| state.terminated.as_ref()) {
        return Seen::Ended(ended.exit_code);
    }
    if let (Some(container), true) = (main, state.is_some_and(|state| state.running.is_some())) {
        return Seen::Running(container.restart_count);
    }
    let Some(status) = &pod.status else {
        return Seen::Coming;
    };
    let all = [&status.init_container_statuses, &status.container_statuses];
    for container in all.into_iter().flatten().flatten() {
        let Some(state) = &container.state else {
            continue;
        };
        if let Some(waiting) = &state.waiting {
            let reason = waiting.reason.as_deref().unwrap_or_default();
            if HOPELESS.contains(&reason) {
                let message = waiting.message.as_deref().unwrap_or_default();
                return Seen::Hopeless(format!(
                    "container {}: {reason}: {message}",
                    container.name
                ));
            }
        }
        if let Some(ended) = &state.terminated
            && ended.exit_code != 0
        {
            let said = ended.message.as_deref().or(ended.reason.as_deref());
            return Seen::Hopeless(format!(
                "container {} ended with {}: {}",
                container.name,
                ended.exit_code,
                said.unwrap_or_default()
            ));
        }
    }
    if status.phase.as_deref() == Some("Failed") {
        let said = status.message.as_deref().or(status.reason.as_deref());
        return Seen::Hopeless(said.unwrap_or("it failed").to_owned());
    }
    let unplaced = status.conditions.iter().flatten().find(|condition| {
        condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
    });
    match unplaced {
        Some(condition) => Seen::NoPlace(condition.message.clone().unwrap_or_default()),
        None => Seen::Coming,
    }
}

/// The pods of one namespace.
#[derive(Clone)]
pub(super) struct Pods {
    pub(super) client: Client,
    pub(super) namespace: String,
    /// How long a pod may take to start.
    pub(super) patience: Duration,
}

impl std::fmt::Debug for Pods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pods")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Pods {
    pub(super) fn api(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Follows a pod through broken connections until `until` says what has become of it.
    async fn follow<T>(
        &self,
        name: &str,
        limit: Duration,
        mut until: impl FnMut(&Seen) -> Option<T>,
    ) -> Result<Option<T>, EngineError> {
        let mut looks = Box::pin(watch_object(self.api(), name).map(|look| match look {
            // A watch that breaks is begun again by itself; what the API refuses for good is not.
            Err(
                watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error),
            ) if matches!(cluster::status(&error), Some(401 | 403)) => Err(error),
            other => Ok(other.ok()),
        }));
        let found = async {
            while let Some(look_at) = looks
                .try_next()
                .await
                .map_err(EngineError::kubernetes(format!("watch pod {name}")))?
            {
                if let Some(pod) = look_at
                    && let Some(found) = until(&look(pod.as_ref()))
                {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        tokio::time::timeout(limit, found).await.unwrap_or(Ok(None))
    }

    /// Waits until a pod's container runs, for the `again`-th time again.
    /// `claim` is its volume's, which may be what it waits for.
    pub(super) async fn runs(
        &self,
        name: &str,
        again: i32,
        claim: Option<&str>,
    ) -> Result<(), EngineError> {
        let mut waiting = String::from("it was not seen");
        let ended = self
            .follow(name, self.patience, |seen| match seen {
                Seen::Running(times) if *times >= again => Some(Ok(())),
                // Between its ends and its next beginning.
                Seen::Ended(_) | Seen::Running(_) if again > 0 => None,
                Seen::Ended(code) => Some(Err(format!("its container ended with {code}"))),
                Seen::Hopeless(why) if again == 0 => Some(Err(why.clone())),
                Seen::NoPlace(why) | Seen::Hopeless(why) => {
                    waiting.clone_from(why);
                    None
                }
                Seen::Coming | Seen::Running(_) | Seen::Gone => None,
            })
            .await?;
        let why = match ended {
            Some(Ok(())) => return Ok(()),
            Some(Err(why)) => why,
            None => format!(
                "after {} s it did not run: {waiting}",
                self.patience.as_secs()
            ),
        };
        let mut events = cluster::events(&self.client, &self.namespace, name).await;
        if let Some(claim) = claim {
            let of_claim = cluster::events(&self.client, &self.namespace, claim).await;
            if !of_claim.is_empty() {
                events.push_str(&format!("; of its volume: {of_claim}"));
            }
        }
        Err(EngineError::NotStarted(format!(
            "pod {name}: {why} (the cluster said: {events})"
        )))
    }

    /// Waits until a pod's container has ended, and gives its exit code; `None` if it is gone without a word.
    pub(super) async fn ended(
        &self,
        name: &str,
        limit: Duration,
    ) -> Result<Option<i32>, EngineError> {
        self.follow(name, limit, |seen| match seen {
            Seen::Ended(code) => Some(Some(*code)),
            Seen::Gone => Some(None),
            _ => None,
        })
        .await?
        .ok_or_else(|| EngineError::NotRunning(format!("{name} (it did not end in time)")))
    }

    /// Waits until a pod is gone, and gives the exit code that its container left, if it was seen.
    pub(super) async fn gone(
        &self,
        name: &str,
        limit: Duration,
    ) -> Result<Option<i32>, EngineError> {
        let mut left = None;
        let gone = self
            .follow(name, limit, |seen| match seen {
                Seen::Gone => Some(()),
                Seen::Ended(code) => {
                    left = Some(*code);
                    None
                }
                _ => None,
            })
            .await?;
        match gone {
            Some(()) => Ok(left),
            None => Err(EngineError::NotStarted(format!(
                "pod {name} is still there after {} s",
                limit.as_secs()
            ))),
        }
    }

    /// What a pod is doing now.
    pub(super) async fn now(&self, name: &str) -> Result<Seen, EngineError> {
        let api = self.api();
        let pod = cluster::ask(&format!("look at pod {name}"), || api.get_opt(name)).await?;
        Ok(look(pod.as_ref()))
    }
}
