//! Whether this user may do what the engine does, as the cluster itself answers
//! (<https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/self-subject-access-review-v1/>).

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};

use super::{Kubernetes, cluster};
use crate::EngineError;

/// What the engine does, as ci/kubernetes/rbac.yaml grants it: group, resource, subresource, verbs.
const NEEDED: &[(&str, &str, &str, &[&str])] = &[
    (
        "",
        "pods",
        "",
        &["create", "delete", "get", "list", "watch"],
    ),
    ("", "pods", "exec", &["create", "get"]),
    ("", "pods", "log", &["get"]),
    ("", "pods", "eviction", &["create"]),
    (
        "",
        "persistentvolumeclaims",
        "",
        &["create", "delete", "get", "list", "patch"],
    ),
    ("", "services", "", &["create", "delete", "get", "list"]),
    ("", "events", "", &["list"]),
    (
        "networking.k8s.io",
        "networkpolicies",
        "",
        &["create", "delete", "list"],
    ),
    (
        "policy",
        "poddisruptionbudgets",
        "",
        &["create", "delete", "list"],
    ),
];

impl Kubernetes {
    /// What this user may not do and the engine needs; nothing if all is well.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub async fn denied(&self) -> Result<Vec<String>, EngineError> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.pods.client.clone());
        let mut denied = Vec::new();
        for (group, resource, subresource, verbs) in NEEDED {
            for verb in *verbs {
                let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                let review = SelfSubjectAccessReview {
                    spec: SelfSubjectAccessReviewSpec {
                        resource_attributes: Some(ResourceAttributes {
                            namespace: Some(self.pods.namespace.clone()),
                            group: some(group),
                            resource: some(resource),
                            subresource: some(subresource),
                            verb: some(verb),
                            ..Default::default()
                        }),
                        ..Default::default()
                    },
                    ..Default::default()
                };
                let params = PostParams::default();
                let answer =
                    cluster::ask("ask what is allowed", || api.create(&params, &review)).await?;
                if !answer.status.is_some_and(|status| status.allowed) {
                    let slash = if subresource.is_empty() { "" } else { "/" };
                    denied.push(format!("{verb} {resource}{slash}{subresource}"));
                }
            }
        }
        Ok(denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manifest that users apply grants what is asked for, and nothing beside it.
    #[test]
    fn the_manifest_grants_exactly_what_is_needed() {
        let manifest = include_str!("../../../../ci/kubernetes/rbac.yaml");
        let role = manifest.split("---").next().expect("there is a first part");
        let mut granted = Vec::new();
        let (mut group, mut resource) = ("", "");
        for line in role.lines().map(str::trim) {
            let list = |line: &'static str| line.trim_matches(['[', ']', '"', ' ']);
            if let Some(rest) = line.strip_prefix("- apiGroups: ") {
                group = list(rest);
            } else if let Some(rest) = line.strip_prefix("resources: ") {
                resource = list(rest);
            } else if let Some(rest) = line.strip_prefix("verbs: ") {
                for verb in list(rest).split(", ") {
                    granted.push(format!("{group} {verb} {resource}"));
                }
            }
        }
        let mut needed: Vec<String> = NEEDED
            .iter()
            .flat_map(|(group, resource, subresource, verbs)| {
                verbs.iter().map(move |verb| {
                    let slash = if subresource.is_empty() { "" } else { "/" };
                    format!("{group} {verb} {resource}{slash}{subresource}")
                })
            })
            .collect();
        granted.sort();
        needed.sort();
        assert_eq!(granted, needed);
    }
}
