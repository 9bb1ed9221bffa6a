//! Kubernetes' objects as they are created: pure, so that they can be printed for review.
//!
//! Every pod fits the restricted Pod Security Standard
//! (<https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>) and is given no service account token.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, PersistentVolumeClaim,
    PersistentVolumeClaimSpec, PersistentVolumeClaimVolumeSource, Pod, PodSecurityContext, PodSpec,
    ResourceRequirements, SeccompProfile, SecurityContext, Service, ServicePort, ServiceSpec,
    Volume, VolumeMount, VolumeResourceRequirements,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use reprise_model::{RunId, WorkspaceId};

use super::Shape;
use crate::{Labels, Maker, START_FILES, StartSpec, Uid};

/// The label of everything that is Reprise's (<https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/>).
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "reprise");

/// Which run an object belongs to.
pub(super) const RUN: &str = "reprise.dev/run";

/// Which workspace.
pub(super) const WORKSPACE: &str = "reprise.dev/workspace";

/// What part an object plays: `workspace` or `gateway`.
pub(super) const PART: &str = "reprise.dev/part";

/// Who made it, as JSON.
pub(super) const MAKER: &str = "reprise.dev/maker";

/// The container that is the workspace, and the one that is the gateway.
pub(super) const MAIN: &str = "main";

/// The init container.
pub(super) const INSTALL: &str = "install";

/// Where the gateway's socket and depot lie in its pod.
pub(super) const GATEWAY_DIR: &str = "/run/reprise";

/// Whether the cluster may pull an image: without a registry of the user's there is none to pull from, and a public one is
/// not asked for what it cannot have.
fn pull_policy(image: &str) -> String {
    let named = image.split('/').count() > 2;
    if named { "IfNotPresent" } else { "Never" }.to_owned()
}

fn quantities(of: &BTreeMap<String, String>) -> Option<BTreeMap<String, Quantity>> {
    Some(
        of.iter()
            .map(|(name, amount)| (name.clone(), Quantity(amount.clone())))
            .collect(),
    )
}

fn labels(run: RunId, part: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned()),
        (RUN.to_owned(), run.to_string()),
        (PART.to_owned(), part.to_owned()),
    ])
}

fn meta(name: String, maker: &Maker, part: &str) -> ObjectMeta {
    let text = serde_json::to_string(maker).expect("a maker is JSON");
    ObjectMeta {
        name: Some(name),
        labels: Some(labels(maker.run, part)),
        annotations: Some(BTreeMap::from([(MAKER.to_owned(), text)])),
        ..Default::default()
    }
}

fn meta_of_workspace(name: String, labels: &Labels) -> ObjectMeta {
    let mut meta = meta(name, &labels.maker, "workspace");
    meta.labels
        .get_or_insert_default()
        .insert(WORKSPACE.to_owned(), labels.workspace.to_string());
    meta
}

/// Selects a run's objects of one part.
fn selector(run: RunId, part: &str) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels(run, part)),
        ..Default::default()
    }
}

fn restricted_pod() -> PodSecurityContext {
    let id = i64::from(Uid::CODER.0);
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(id),
        run_as_group: Some(id),
        fs_group: Some(id),
        // A large home is not walked again at each start.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn small() -> ResourceRequirements {
    let map = |cpu: &str, memory: &str| {
        Some(BTreeMap::from([
            ("cpu".to_owned(), Quantity(cpu.to_owned())),
            ("memory".to_owned(), Quantity(memory.to_owned())),
        ]))
    };
    ResourceRequirements {
        requests: map("20m", "64Mi"),
        limits: map("1", "1Gi"),
        ..Default::default()
    }
}

/// What every pod has in common: it runs once, and may do next to nothing.
fn restricted_spec(containers: Vec<Container>) -> PodSpec {
    PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        restart_policy: Some("Never".to_owned()),
        security_context: Some(restricted_pod()),
        containers,
        ..Default::default()
    }
}

/// A container that runs this program.
fn program(name: &str, image: &str, command: Vec<String>) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(pull_policy(image)),
        command: Some(command),
        security_context: Some(restricted()),
        resources: Some(small()),
        ..Default::default()
    }
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..Default::default()
    }
}

fn empty_dir(name: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Default::default()
    }
}

/// The name of a workspace's volume.
pub(super) fn claim_name(workspace: WorkspaceId) -> String {
    format!("reprise-{workspace}")
}

/// The name of a run's own objects.
pub(super) fn run_name(run: RunId) -> String {
    format!("reprise-gateway-{run}")
}

/// A workspace's volume: keyed by its id, and by nothing else.
pub(super) fn claim(labels: &Labels, shape: &Shape) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: meta_of_workspace(claim_name(labels.workspace), labels),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: shape.storage_class.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([(
                    "storage".to_owned(),
                    Quantity(shape.storage.clone()),
                )])),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// What one start of a workspace's pod needs beside its spec.
#[derive(Debug, Clone)]
pub(super) struct Furnishing {
    /// The image of the workspace.
    pub(super) workspace_image: String,
    /// The image of this program.
    pub(super) program_image: String,
    /// Where it fetches the rest: a URL.
    pub(super) depot: String,
    /// Other names of this program.
    pub(super) names: Vec<String>,
    /// What it fetches.
    pub(super) keys: Vec<String>,
    /// The gateway's host.
    pub(super) gateway: String,
}

/// A workspace's pod. Its container is not started again when it ends, unless the spec asks for it.
pub(super) fn workspace(
    name: &str,
    spec: &StartSpec,
    shape: &Shape,
    furnishing: &Furnishing,
) -> Pod {
    let mut install = vec![
        "/reprise".to_owned(),
        "workspace-agent".to_owned(),
        "install".to_owned(),
        format!("--from={}", furnishing.depot),
        format!("--into={START_FILES}"),
    ];
    install.extend(furnishing.names.iter().map(|name| format!("--name={name}")));
    install.extend(furnishing.keys.iter().map(|key| format!("--fetch={key}")));
    let mut command = spec.init.clone();
    command.extend([
        "--forward-from".to_owned(),
        spec.gateway.to_string(),
        "--forward-to".to_owned(),
        format!("tcp://{}/{}", furnishing.gateway, spec.labels.workspace),
    ]);
    let home = spec.home.display().to_string();
    Pod {
        metadata: meta_of_workspace(name.to_owned(), &spec.labels),
        spec: Some(PodSpec {
            hostname: Some(spec.hostname.clone()),
            restart_policy: Some(if spec.in_place { "Always" } else { "Never" }.to_owned()),
            // How long a deletion that says nothing else may take.
            termination_grace_period_seconds: Some(30),
            init_containers: Some(vec![Container {
                volume_mounts: Some(vec![mount("start", START_FILES)]),
                ..program(INSTALL, &furnishing.program_image, install)
            }]),
            volumes: Some(vec![
                empty_dir("start"),
                Volume {
                    name: "home".to_owned(),
                    persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                        claim_name: claim_name(spec.labels.workspace),
                        ..Default::default()
                    }),
                    ..Default::default()
                },
            ]),
            ..restricted_spec(vec![Container {
                name: MAIN.to_owned(),
                image_pull_policy: Some(pull_policy(&furnishing.workspace_image)),
                image: Some(furnishing.workspace_image.clone()),
                command: Some(command),
                working_dir: Some(home.clone()),
                env: Some(
                    spec.env
                        .iter()
                        .map(|(name, value)| EnvVar {
                            name: name.clone(),
                            // Kubernetes expands $(NAME); a dollar is written twice (<https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables>).
                            value: Some(value.replace('$', "$$")),
                            ..Default::default()
                        })
                        .collect(),
                ),
                security_context: Some(restricted()),
                resources: Some(ResourceRequirements {
                    requests: quantities(&shape.requests),
                    limits: quantities(&shape.limits),
                    ..Default::default()
                }),
                volume_mounts: Some(vec![mount("start", START_FILES), mount("home", &home)]),
                ..Default::default()
            }])
        }),
        ..Default::default()
    }
}

/// The pod in which a run's gateway answers.
pub(super) fn gateway(maker: &Maker, program_image: &str) -> Pod {
    Pod {
        metadata: meta(run_name(maker.run), maker, "gateway"),
        spec: Some(PodSpec {
            termination_grace_period_seconds: Some(1),
            volumes: Some(vec![empty_dir("run")]),
            ..restricted_spec(vec![Container {
                volume_mounts: Some(vec![mount("run", GATEWAY_DIR)]),
                ..program(
                    MAIN,
                    program_image,
                    ["/reprise", "gateway", "serve", GATEWAY_DIR]
                        .map(str::to_owned)
                        .to_vec(),
                )
            }])
        }),
        ..Default::default()
    }
}

/// The gateway's ports, by name.
pub(super) struct Ports {
    /// Agents' requests.
    pub(super) wire: u16,
    /// What starts fetch.
    pub(super) depot: u16,
    /// What a network policy must refuse.
    pub(super) shut: u16,
}

/// The address of a run's gateway.
pub(super) fn service(maker: &Maker, ports: &Ports) -> Service {
    let port = |name: &str, port: u16| ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(port),
        ..Default::default()
    };
    Service {
        metadata: meta(run_name(maker.run), maker, "gateway"),
        spec: Some(ServiceSpec {
            selector: Some(labels(maker.run, "gateway")),
            ports: Some(vec![
                port("wire", ports.wire),
                port("depot", ports.depot),
                port("shut", ports.shut),
            ]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// What keeps workspaces from everything but their run's gateway, and everybody but them from it.
pub(super) fn policies(maker: &Maker, ports: &Ports) -> [NetworkPolicy; 2] {
    let open = |ports: &[u16]| {
        Some(
            ports
                .iter()
                .map(|port| NetworkPolicyPort {
                    port: Some(IntOrString::Int(i32::from(*port))),
                    protocol: Some("TCP".to_owned()),
                    ..Default::default()
                })
                .collect(),
        )
    };
    let peer = |part: &str| {
        Some(vec![NetworkPolicyPeer {
            pod_selector: Some(selector(maker.run, part)),
            ..Default::default()
        }])
    };
    let policy = |part: &str, spec: NetworkPolicySpec| NetworkPolicy {
        metadata: meta(format!("{}-{part}", run_name(maker.run)), maker, part),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector(maker.run, part)),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ..spec
        }),
    };
    [
        policy(
            "workspace",
            NetworkPolicySpec {
                egress: Some(vec![NetworkPolicyEgressRule {
                    ports: open(&[ports.wire, ports.depot]),
                    to: peer("gateway"),
                }]),
                ..Default::default()
            },
        ),
        policy(
            "gateway",
            NetworkPolicySpec {
                ingress: Some(vec![NetworkPolicyIngressRule {
                    // The workspaces' own policy is what must shut the third port.
                    ports: open(&[ports.wire, ports.depot, ports.shut]),
                    from: peer("workspace"),
                }]),
                ..Default::default()
            },
        ),
    ]
}

/// Lets a workspace be moved off its node, by way of the disruption controller.
pub(super) fn budget(labels: &Labels) -> PodDisruptionBudget {
    let metadata = meta_of_workspace(claim_name(labels.workspace), labels);
    // It bears the labels of the pods that it is for.
    let selector = LabelSelector {
        match_labels: metadata.labels.clone(),
        ..Default::default()
    };
    PodDisruptionBudget {
        metadata,
        spec: Some(PodDisruptionBudgetSpec {
            // A pod of its own has no controller, and a budget for those can only say how many must stay.
            min_available: Some(IntOrString::Int(0)),
            selector: Some(selector),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Who made an object, and for which workspace.
pub(super) fn read(meta: &ObjectMeta) -> (Option<Maker>, Option<WorkspaceId>) {
    let maker = meta
        .annotations
        .as_ref()
        .and_then(|all| serde_json::from_str(all.get(MAKER)?).ok());
    let workspace = meta
        .labels
        .as_ref()
        .and_then(|all| all.get(WORKSPACE)?.parse().ok());
    (maker, workspace)
}

/// The name of the pod that tries the cluster's network.
pub(super) fn trial_name(run: RunId) -> String {
    format!("reprise-trial-{run}")
}

/// A pod with a workspace's labels that tries what it reaches, says so, and ends.
pub(super) fn trial(maker: &Maker, program_image: &str, open: &str, shut: &str) -> Pod {
    Pod {
        metadata: meta(trial_name(maker.run), maker, "workspace"),
        spec: Some(restricted_spec(vec![program(
            MAIN,
            program_image,
            ["/reprise", "workspace-agent", "try-walls", open, shut]
                .map(str::to_owned)
                .to_vec(),
        )])),
        ..Default::default()
    }
}
