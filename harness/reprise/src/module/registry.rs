//! A module registry on this machine's loopback, in the protocol Terraform speaks
//! (<https://developer.hashicorp.com/terraform/internals/module-registry-protocol>), so that modules nested in a module come
//! from the same source at their pinned versions.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use reprise_model::ModuleRef;
use semver::Version;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::source::{Source, SourceError, pack};

/// The version under which the working tree's module is served: no release has it.
const TREE: Version = Version::new(0, 0, 0);

/// A served registry; it ends when this is dropped.
#[derive(Debug)]
pub struct ModuleRegistry {
    address: SocketAddr,
    server: AbortHandle,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    address: SocketAddr,
    /// The module that comes from the working tree.
    tree: Option<ModuleRef>,
    /// Why requests failed: Terraform only shows the status.
    problems: Mutex<Vec<String>>,
}

impl ModuleRegistry {
    /// Serves `source`. `module` without a version is served from the working tree.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn serve(source: Source, module: &ModuleRef) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            source,
            address,
            tree: module.version.is_none().then(|| module.clone()),
            problems: Mutex::default(),
        });
        let router = Router::new()
            .route(
                "/v1/modules/{namespace}/{name}/coder/versions",
                get(versions),
            )
            .route(
                "/v1/modules/{namespace}/{name}/coder/{version}/download",
                get(download),
            )
            .route("/archive/{namespace}/{name}/{file}", get(archive))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self {
            address,
            server: server.abort_handle(),
            shared,
        })
    }

    /// Where modules are: for `host { services = { "modules.v1" = … } }` of Terraform's configuration.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1/modules/", self.address)
    }

    /// The version to ask for.
    #[must_use]
    pub fn version(module: &ModuleRef) -> Version {
        module.version.clone().unwrap_or(TREE)
    }

    /// What could not be served so far.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.shared
            .problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for ModuleRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn is_tree(&self, namespace: &str, name: &str) -> bool {
        self.tree
            .as_ref()
            .is_some_and(|tree| tree.namespace == namespace && tree.name == name)
    }

    fn refuse(&self, error: &SourceError) -> Response {
        let message = error.to_string();
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message.clone());
        (StatusCode::NOT_FOUND, message).into_response()
    }
}

async fn versions(
    State(shared): State<Arc<Shared>>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let versions = if shared.is_tree(&namespace, &name) {
        vec![TREE]
    } else {
        match shared.source.versions(&namespace, &name).await {
            Ok(versions) => versions,
            Err(error) => return shared.refuse(&error),
        }
    };
    let versions: Vec<_> = versions
        .into_iter()
        .map(|version| json!({ "version": version }))
        .collect();
    Json(json!({ "modules": [{ "versions": versions }] })).into_response()
}

async fn download(
    State(shared): State<Arc<Shared>>,
    Path((namespace, name, version)): Path<(String, String, String)>,
) -> Response {
    let url = format!(
        "http://{}/archive/{namespace}/{name}/{version}.tar.gz?archive=tar.gz",
        shared.address
    );
    (
        StatusCode::NO_CONTENT,
        [(HeaderName::from_static("x-terraform-get"), url)],
    )
        .into_response()
}

async fn archive(
    State(shared): State<Arc<Shared>>,
    Path((namespace, name, file)): Path<(String, String, String)>,
) -> Response {
    let version = file
        .strip_suffix(".tar.gz")
        .and_then(|version| Version::parse(version).ok());
    let module = ModuleRef {
        namespace,
        name,
        version,
    };
    let packed = if shared.is_tree(&module.namespace, &module.name) {
        shared.source.tree(&module).and_then(|dir| pack(&dir))
    } else {
        shared.source.archive(&module).await
    };
    match packed {
        Ok(archive) => ([(header::CONTENT_TYPE, "application/gzip")], archive).into_response(),
        Err(error) => shared.refuse(&error),
    }
}
