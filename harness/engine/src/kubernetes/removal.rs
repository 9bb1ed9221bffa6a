//! Finding what is Reprise's in a namespace, and removing it.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Resource, ResourceExt};
use reprise_model::WorkspaceId;
use serde::de::DeserializeOwned;

use super::{Kubernetes, REMOVAL, cluster, hub, objects};
use crate::{EngineError, Leftover, LeftoverKind};

impl Kubernetes {
    /// Everything of Reprise's in the namespace, or what belongs to one workspace: the API server selects, so that a thousand
    /// workspaces are not told of each other.
    pub(super) async fn find(&self, of: Option<WorkspaceId>) -> Result<Vec<Leftover>, EngineError> {
        let (pods, budgets, claims) = tokio::try_join!(
            self.list::<Pod>(LeftoverKind::Instance, "pod", of),
            self.list::<PodDisruptionBudget>(LeftoverKind::Route, "poddisruptionbudget", of),
            self.list::<PersistentVolumeClaim>(LeftoverKind::Volume, "persistentvolumeclaim", of),
        )?;
        let mut found = pods;
        found.extend(budgets);
        // Workspaces have none of their own.
        if of.is_none() {
            let (services, policies) = tokio::try_join!(
                self.list::<Service>(LeftoverKind::Route, "service", of),
                self.list::<NetworkPolicy>(LeftoverKind::Route, "networkpolicy", of),
            )?;
            found.extend(services);
            found.extend(policies);
        }
        found.extend(claims);
        Ok(found)
    }

    async fn list<K>(
        &self,
        kind: LeftoverKind,
        prefix: &str,
        of: Option<WorkspaceId>,
    ) -> Result<Vec<Leftover>, EngineError>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
        <K as Resource>::DynamicType: Default,
    {
        let api: Api<K> = self.api();
        let (name, value) = objects::MANAGED_BY;
        let mut labels = format!("{name}={value}");
        if let Some(workspace) = of {
            labels.push_str(&format!(",{}={workspace}", objects::WORKSPACE));
        }
        let params = ListParams::default().labels(&labels);
        let found = cluster::ask(&format!("list {prefix}s"), || api.list(&params)).await?;
        Ok(found
            .items
            .iter()
            .map(|object| {
                let (maker, workspace) = objects::read(object.meta());
                Leftover {
                    kind,
                    name: format!("{prefix}/{}", object.name_any()),
                    maker,
                    workspace,
                }
            })
            .collect())
    }

    pub(super) async fn remove_object<K>(&self, what: &str, name: &str) -> Result<(), EngineError>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
        <K as Resource>::DynamicType: Default,
    {
        let api: Api<K> = self.api();
        cluster::delete(&api, what, name, &DeleteParams::default()).await
    }

    /// Deletes a claim and waits until it is gone: it is protected while a pod uses it.
    pub(super) async fn remove_claim(&self, name: &str) -> Result<(), EngineError> {
        self.remove_object::<PersistentVolumeClaim>("volume claim", name)
            .await?;
        let api: Api<PersistentVolumeClaim> = self.api();
        let gone = async {
            let mut pause = Duration::from_millis(20);
            while cluster::ask("look at a volume claim", || api.get_opt(name))
                .await?
                .is_some()
            {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            Ok(())
        };
        tokio::time::timeout(REMOVAL, gone)
            .await
            .unwrap_or_else(|_| {
                Err(EngineError::NotStarted(format!(
                    "volume claim {name} is still there: some pod uses it"
                )))
            })
    }

    pub(super) async fn remove_pod_and_wait(
        &self,
        name: &str,
        grace: u32,
    ) -> Result<(), EngineError> {
        hub::remove_pod(&self.pods.api(), name, grace).await?;
        self.pods.gone(name, REMOVAL).await.map(drop)
    }
}
