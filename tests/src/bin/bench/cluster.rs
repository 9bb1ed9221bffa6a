//! What a cluster is asked for: a restart beside kubectl's, and many workspaces at once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use reprise_engine::kubernetes::{Kubernetes, Place, Shape};
use reprise_engine::{Engine, Exec};
use reprise_model::RunId;
use serde_json::{Value, json};

use super::{Result, labels, median, show, spec, up};

async fn connect(program: &Path) -> Result<Kubernetes> {
    let place = Place {
        kubeconfig: std::env::var_os("KUBECONFIG").map(PathBuf::from),
        ..Place::default()
    };
    Ok(Kubernetes::connect(&place, Shape::default(), program.to_owned(), RunId::draw()).await?)
}

fn kubectl(args: &[&str], input: Option<&Value>) -> Result<String> {
    let mut child = Command::new("kubectl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    if let Some(input) = input {
        serde_json::to_writer(&mut stdin, input)?;
    }
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("kubectl {args:?} ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A restart (end, start, first command), by the engine, and by kubectl with the very same pod: `delete pod`, `apply`,
/// `wait`.
pub(super) async fn restart(program: &str, rounds: usize) -> Result {
    let program = std::fs::canonicalize(program)?;
    let engine = connect(&program).await?;
    engine.prepare(&|_| ()).await?;
    let labels = labels();
    let route = engine.create(&labels, None).await?;
    let spec = spec(&program, &labels, route.address);
    let mut started = up(&engine, &spec).await?;

    // The peer's pod is a copy, with a volume of its own.
    let peer = format!("bench-{}", labels.workspace);
    let (mut pod, mut claim): (Value, Value) = (
        serde_json::from_str(&kubectl(
            &["get", "pod", &started.instance.0, "-o", "json"],
            None,
        )?)?,
        serde_json::from_str(&kubectl(
            &[
                "get",
                "pvc",
                &format!("reprise-{}", labels.workspace),
                "-o",
                "json",
            ],
            None,
        )?)?,
    );
    for object in [&mut pod, &mut claim] {
        let meta = json!({ "name": peer, "labels": object["metadata"]["labels"] });
        object["metadata"] = meta;
        object.as_object_mut().expect("it is one").remove("status");
    }
    let fields = pod["spec"].as_object_mut().expect("it is one");
    fields.remove("nodeName");
    for volume in fields["volumes"].as_array_mut().expect("it is one") {
        if volume.get("persistentVolumeClaim").is_some() {
            volume["persistentVolumeClaim"] = json!({ "claimName": peer });
        }
    }
    claim["spec"]
        .as_object_mut()
        .expect("it is one")
        .remove("volumeName");
    kubectl(&["apply", "-f", "-"], Some(&claim))?;
    let start = || -> Result {
        kubectl(&["apply", "-f", "-"], Some(&pod))?;
        kubectl(
            &[
                "wait",
                "--for=condition=Ready",
                "--timeout=60s",
                &format!("pod/{peer}"),
            ],
            None,
        )?;
        kubectl(&["exec", &peer, "-c", "main", "--", "true"], None)?;
        Ok(())
    };
    start()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        engine
            .stop(&started.instance, Duration::from_secs(10))
            .await?;
        started = up(&engine, &spec).await?;
        ours.push(began.elapsed());
        let began = Instant::now();
        kubectl(&["delete", "pod", &peer, "--grace-period=10"], None)?;
        start()?;
        theirs.push(began.elapsed());
    }
    engine.delete(labels.workspace).await?;
    kubectl(
        &[
            "delete",
            "pod",
            &peer,
            "--grace-period=1",
            "--ignore-not-found",
        ],
        None,
    )?;
    kubectl(&["delete", "pvc", &peer, "--ignore-not-found"], None)?;
    engine.close().await?;
    show(
        "restart on kubernetes",
        median(ours),
        "kubectl",
        median(theirs),
        "at most 1.10",
    );
    Ok(())
}

/// Many workspaces at once: created, started, restarted, deleted.
pub(super) async fn scale(program: &str, workspaces: u32) -> Result {
    let program = std::fs::canonicalize(program)?;
    let engine = connect(&program).await?;
    engine.prepare(&|_| ()).await?;
    let calls = engine.calls();
    let began = Instant::now();
    let lives = (0..workspaces).map(|_| async {
        let labels = labels();
        let route = engine.create(&labels, None).await?;
        let spec = spec(&program, &labels, route.address);
        let first = up(&engine, &spec).await?;
        engine
            .stop(&first.instance, Duration::from_secs(30))
            .await?;
        let second = up(&engine, &spec).await?;
        let said = engine
            .exec(&second.instance, &Exec::new(["hostname"]))
            .await?;
        assert_eq!(said.code, 0);
        engine.delete(labels.workspace).await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    try_join_all(lives).await?;
    let took = began.elapsed();
    let calls = engine.calls() - calls;
    engine.close().await?;
    let memory = std::fs::read_to_string("/proc/self/status")?
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")
                .map(|rest| rest.trim().to_owned())
        })
        .unwrap_or_default();
    println!(
        "{workspaces} workspace(s) created, started, restarted, deleted: {:.1} s, {:.2} a second, {:.1} API calls each, {memory} of memory",
        took.as_secs_f64(),
        f64::from(workspaces) / took.as_secs_f64(),
        f64::from(u32::try_from(calls)?) / f64::from(workspaces),
    );
    Ok(())
}
