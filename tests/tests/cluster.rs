//! What only a cluster can show: what its refusals become, who waits for whom, and what is left of runs that were killed.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use reprise_engine::kubernetes::{Kubernetes, Place, Shape};
use reprise_engine::{Engine, Leftover};
use reprise_model::RunId;
use reprise_tests::user::{Bench, reference_cell, usable};
use reprise_tests::{kubeconfig, program};
use serde_json::json;

async fn engine(namespace: Option<&str>, shape: Shape) -> Kubernetes {
    let place = Place {
        kubeconfig: kubeconfig(),
        context: None,
        namespace: namespace.map(str::to_owned),
    };
    Kubernetes::connect(&place, shape, program(), RunId::draw())
        .await
        .expect("the cluster answers")
}

async fn client() -> Client {
    let file = Kubeconfig::read_from(kubeconfig().expect("the cluster is there"))
        .expect("it is a kubeconfig");
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .expect("it names a cluster");
    Client::try_from(config).expect("a client can be made")
}

/// What is left of the run of one process.
async fn left_by(pid: u32) -> Vec<Leftover> {
    let engine = engine(None, Shape::default()).await;
    let all = engine.leftovers().await.expect("leftovers can be listed");
    all.into_iter()
        .filter(|left| left.maker.as_ref().is_some_and(|maker| maker.pid == pid))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_at_any_moment_leaves_nothing_that_gc_does_not_find() {
    const MOMENTS: usize = 6;
    let bench = Bench::open();
    if !usable(&bench, "kubernetes") {
        return;
    }
    let client = client().await;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let services: Api<Service> = Api::default_namespaced(client);
    let name = format!("somebody-elses-{}", std::process::id());
    let theirs = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "16Mi" } } },
    }))
    .expect("it is a claim");
    claims
        .create(&PostParams::default(), &theirs)
        .await
        .expect("a claim can be made");
    let theirs = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "somebody-else" } },
        "spec": { "ports": [{ "port": 80 }] },
    }))
    .expect("it is a service");
    services
        .create(&PostParams::default(), &theirs)
        .await
        .expect("a service can be made");

    for _ in 0..MOMENTS {
        let moment = u64::try_from(RunId::draw().uuid().as_u128() % 12_000).expect("it is small");
        let moment = Duration::from_millis(moment);
        eprintln!("killed after {moment:?}");
        let mut child = bench
            .command(&reference_cell(
                "kubernetes",
                "native",
                "warm_restart",
                &["-s", "node_drained"],
            ))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the program runs");
        tokio::time::sleep(moment).await;
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
        let collected = bench.run(&["gc", "-e", "kubernetes"]);
        collected.says(0, &[" 0 not removed"]);
        let left = left_by(child.id()).await;
        assert!(left.is_empty(), "killed after {moment:?}: {left:?}");
    }

    let params = DeleteParams::default();
    claims
        .delete(&name, &params)
        .await
        .expect("it was left alone");
    services
        .delete(&name, &params)
        .await
        .expect("it was left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_dies_is_no_failure_of_the_agent() {
    let bench = Bench::open();
    if !usable(&bench, "kubernetes") {
        return;
    }
    for layer in ["native", "module"] {
        let args = reference_cell("kubernetes", layer, "warm_restart", &[]);
        let mut child = bench.run_until(&args, "\"act\":\"plant_marks\"");
        let gateways: Vec<Leftover> = left_by(child.id())
            .await
            .into_iter()
            .filter(|left| left.name.starts_with("pod/reprise-gateway"))
            .collect();
        assert_eq!(gateways.len(), 1, "{gateways:?}");
        let engine = engine(None, Shape::default()).await;
        engine.remove(&gateways[0]).await.expect("it can be ended");
        let status = child.wait().expect("a child can be waited for");
        assert_eq!(status.code(), Some(2), "{layer}");
        std::fs::remove_dir_all(bench.dir.path().join("runs")).expect("removed");
    }
}

/// What `prepare` and a start in this shape end with.
async fn refusal(namespace: Option<&str>, shape: Shape) -> String {
    let engine = Arc::new(engine(namespace, shape).await);
    let bench = reprise_engine::conformance::Bench {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        program: program(),
    };
    let refused = reprise_engine::conformance::first_refusal(&bench).await;
    engine.close().await.expect("what was made goes");
    refused
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_refuses_is_said_in_its_own_words() {
    let bench = Bench::open();
    if !usable(&bench, "kubernetes") {
        return;
    }
    let says = |text: &str, words: &[&str]| {
        for word in words {
            assert!(text.contains(word), "`{word}` is missing in: {text}");
        }
    };
    let patience = Duration::from_secs(20);
    let no_registry = Shape {
        registry: Some("127.0.0.1:1".to_owned()),
        patience,
        ..Shape::default()
    };
    let no_class = Shape {
        storage_class: Some("none-such".to_owned()),
        patience,
        ..Shape::default()
    };
    let mut no_node = Shape {
        patience,
        ..Shape::default()
    };
    no_node.requests.insert("cpu".to_owned(), "900".to_owned());
    no_node.limits.insert("cpu".to_owned(), "900".to_owned());
    let (registry, class, node) = tokio::join!(
        refusal(None, no_registry),
        refusal(None, no_class),
        refusal(None, no_node)
    );
    says(
        &registry,
        &[
            "ImagePull",
            "127.0.0.1:1/reprise/program",
            "connection refused",
        ],
    );
    says(&class, &["PersistentVolumeClaim", "none-such", "not found"]);
    says(&node, &["Insufficient cpu"]);

    let elsewhere = ["doctor", "-e", "kubernetes", "--namespace", "default"];
    bench.run(&elsewhere).says(
        0,
        &[
            "missing",
            "you may not create pods",
            "ci/kubernetes/rbac.yaml",
        ],
    );
    let forbidden = reference_cell(
        "kubernetes",
        "native",
        "cold_start",
        &["--namespace", "default", "--require", "all"],
    );
    bench
        .run(&forbidden)
        .says(3, &["forbidden", "not measured"]);
    let nowhere = [
        "run",
        "reference",
        "-e",
        "kubernetes",
        "--context",
        "none-such",
    ];
    bench.run(&nowhere).says(69, &["none-such", "--context"]);
}

#[test]
fn who_finds_a_quota_used_up_waits_for_others_to_end() {
    let bench = Bench::open();
    if !usable(&bench, "kubernetes") {
        return;
    }
    bench
        .run(&reference_cell(
            "kubernetes",
            "native",
            "cold_start",
            &[
                "-s",
                "warm_restart",
                "-s",
                "crash_restart",
                "--namespace",
                "reprise-small",
                "-j",
                "3",
                "--require",
                "all",
            ],
        ))
        .says(0, &["3 pass"]);
}
