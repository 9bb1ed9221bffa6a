//! Talking to the API server: which cluster, what is tried again, and what an error means.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use http::Request;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error as ClientError};
use serde::de::DeserializeOwned;
use tower::util::MapRequestLayer;

use crate::{EngineError, Missing};

/// Which cluster, and where in it.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// A kubeconfig; the user's if `None`.
    pub kubeconfig: Option<std::path::PathBuf>,
    /// The context of the user's kubeconfig; its current one if `None`.
    pub context: Option<String>,
    /// The namespace; the context's if `None`.
    pub namespace: Option<String>,
}

/// How long a quota may keep a workspace waiting until others have ended.
const BACK_PRESSURE: usize = 200;

/// Connects, and counts in `calls` what is asked of the API server.
pub(super) async fn connect(
    place: &Place,
    calls: &Arc<AtomicU64>,
) -> Result<(Client, String), Missing> {
    let missing = |what: String| {
        Missing {
        what,
        remedy: "set KUBECONFIG or --context, or use --engine docker; ci/cluster makes a cluster on this machine"
            .to_owned(),
    }
    };
    let options = KubeConfigOptions {
        context: place.context.clone(),
        ..Default::default()
    };
    let file = match &place.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = file.map_err(|error| missing(format!("no kubeconfig: {error}")))?;
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|error| missing(format!("the kubeconfig names no cluster: {error}")))?;
    config.connect_timeout = Some(Duration::from_secs(10));
    let namespace = place
        .namespace
        .clone()
        .unwrap_or_else(|| config.default_namespace.clone());
    let address = config.cluster_url.to_string();
    let calls = Arc::clone(calls);
    let client = ClientBuilder::try_from(config)
        .map_err(|error| {
            missing(format!(
                "the cluster {address} cannot be talked to: {error}"
            ))
        })?
        .with_layer(&MapRequestLayer::new(move |request: Request<Body>| {
            calls.fetch_add(1, Ordering::Relaxed);
            request
        }))
        .build();
    client
        .apiserver_version()
        .await
        .map_err(|error| missing(format!("the cluster {address} does not answer: {error}")))?;
    Ok((client, namespace))
}

/// The HTTP status of an error of the API's.
pub(super) fn status(error: &ClientError) -> Option<u16> {
    match error {
        ClientError::Api(status) => Some(status.code),
        _ => None,
    }
}

pub(super) fn gone(error: &ClientError) -> bool {
    status(error) == Some(404)
}

/// A server that is busy, starting, or was not reached may do it the next time.
fn passing(error: &ClientError) -> bool {
    match error {
        ClientError::Api(status) => matches!(status.code, 429 | 500 | 502 | 503 | 504),
        ClientError::HyperError(_) | ClientError::Service(_) => true,
        _ => false,
    }
}

fn quota(error: &ClientError) -> bool {
    matches!(error, ClientError::Api(status) if status.code == 403 && status.message.contains("exceeded quota"))
}

/// Asks until an answer comes that another attempt would not change, for half a minute at most.
pub(super) async fn ask<T, F>(doing: &str, call: impl FnMut() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    call.retry(patience())
        .when(passing)
        .await
        .map_err(EngineError::kubernetes(doing))
}

fn patience() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(5))
        .with_max_times(9)
}

/// Creates an object. One that is there already was made by an attempt whose answer was lost: names are never used twice.
/// Where a quota is used up, it waits for others to end.
pub(super) async fn create<T, F>(
    doing: &str,
    mut call: impl FnMut() -> F,
) -> Result<(), EngineError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let once = || {
        let made = call();
        async {
            match made.await {
                Ok(_) => Ok(()),
                Err(error) if status(&error) == Some(409) => Ok(()),
                Err(error) => Err(error),
            }
        }
    };
    let pressed = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(3))
        .with_max_times(BACK_PRESSURE);
    once.retry(pressed)
        .when(|error| quota(error) || passing(error))
        .await
        .map_err(EngineError::kubernetes(doing))
}

/// Deletes an object. One that is not there any more is deleted.
pub(super) async fn delete<K>(
    api: &Api<K>,
    what: &str,
    name: &str,
    params: &DeleteParams,
) -> Result<(), EngineError>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    ask(&format!("delete {what} {name}"), || async {
        match api.delete(name, params).await {
            Err(error) if gone(&error) => Ok(()),
            other => other.map(drop),
        }
    })
    .await
}

/// What the cluster said last of an object that does not become what it should.
pub(super) async fn events(client: &Client, namespace: &str, name: &str) -> String {
    const SHOWN: usize = 4;
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let params = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let Ok(found) = api.list(&params).await else {
        return String::new();
    };
    let said: Vec<String> = found
        .items
        .into_iter()
        .filter_map(|event| {
            Some(format!(
                "{}: {}",
                event.reason.unwrap_or_default(),
                event.message?.trim()
            ))
        })
        .collect();
    said[said.len().saturating_sub(SHOWN)..].join("; ")
}
