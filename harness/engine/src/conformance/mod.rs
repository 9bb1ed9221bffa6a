//! What every engine must do, as cases that a test runs by name. A case panics with what it saw.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Engine, EngineError, Exec};

mod workspace;

pub use workspace::first_refusal;
use workspace::{Serving, Workspace};

/// The engine to try, and the static program that plays PID 1.
#[derive(Clone)]
pub struct Bench {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The program.
    pub program: PathBuf,
}

type Future = Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

/// One case.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(Bench) -> Future,
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        /// Every case.
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            run: |bench| Box::pin($name(bench)),
        }),*];
    };
}

cases![
    the_home_survives_a_restart_and_nothing_else_does,
    the_home_survives_a_kill,
    the_gateway_is_reached_and_nothing_else_is,
    a_command_gives_its_code_and_both_streams,
    a_command_reads_its_input,
    a_command_may_write_much,
    a_command_is_ended_at_its_limit,
    processes_run_as_the_workspaces_user,
    stop_scripts_run_within_the_grace,
    a_workspace_that_will_not_stop_is_killed,
    a_kill_runs_no_stop_script,
    two_workspaces_see_nothing_of_each_other,
    the_machines_own_files_are_not_there,
    deleting_leaves_nothing,
];

async fn the_home_survives_a_restart_and_nothing_else_does(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let first = workspace.start(None).await;
    // Twice: a privileged process can write to the root, and the user's mark in the home must stay readable.
    workspace
        .agent(&first, &["plant-marks", "root-mark"], true)
        .await;
    let (code, text) = workspace
        .run(&first, &["rm", "-f", "/home/coder/.reprise-mark"])
        .await;
    assert_eq!(code, 0, "{text}");
    workspace
        .agent(&first, &["plant-marks", "mark"], false)
        .await;
    let there = workspace
        .agent(&first, &["find-marks", "mark"], false)
        .await;
    assert_eq!(there["home"], true);
    assert_eq!(there["process"], true);
    workspace.stop(&first).await;

    let second = workspace.start(None).await;
    assert_ne!(first.instance, second.instance);
    for mark in ["mark", "root-mark"] {
        let found = workspace.agent(&second, &["find-marks", mark], false).await;
        assert_eq!(found["home"], mark == "mark", "{mark}");
        assert_eq!(found["outside"], serde_json::json!([]), "{mark}");
        assert_eq!(found["process"], false, "{mark}");
    }
    workspace.stop(&second).await;
    workspace.delete().await;
}

async fn the_home_survives_a_kill(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let first = workspace.start(None).await;
    workspace
        .agent(&first, &["plant-marks", "mark"], false)
        .await;
    bench
        .engine
        .kill(&first.instance)
        .await
        .expect("it can be killed");
    let second = workspace.start(None).await;
    let found = workspace
        .agent(&second, &["find-marks", "mark"], false)
        .await;
    assert_eq!(found["home"], true);
    assert_eq!(found["outside"], serde_json::json!([]));
    assert_eq!(found["process"], false);
    workspace.delete().await;
}

/// Answers every connection with an empty 200 until the process ends.
fn answer(listener: TcpListener) {
    thread::spawn(move || {
        for mut stream in listener.incoming().filter_map(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
}

/// This machine's address on its way to the world, if it has one. Nothing is sent.
fn outer_address() -> Option<SocketAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address set aside for documentation (RFC 5737).
    socket.connect("198.51.100.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then(|| SocketAddr::new(ip, 0))
}

async fn the_gateway_is_reached_and_nothing_else_is(bench: Bench) {
    let mut workspace = Workspace::new(&bench).await;
    let mut serving = Serving::new();
    if let Some(door) = workspace.route.door.take() {
        serving.open(workspace.labels.workspace, door).await;
    }
    let mut started = workspace.start(None).await;
    if let Some(door) = started.door.take() {
        serving.open(workspace.labels.workspace, door).await;
    }
    let url = format!("http://{}/v1/models", workspace.route.address);
    let reply = workspace
        .agent(&started, &["request", "GET", &url], false)
        .await;
    let status = &reply["answered"]["status"];
    assert_eq!(*status, 200, "the gateway is not reached: {reply}");

    let mut elsewhere = vec!["http://198.51.100.1/".to_owned()];
    if let Some(address) = outer_address() {
        let own = TcpListener::bind(address).expect("this machine's own address");
        let address = own.local_addr().expect("a listener has an address");
        answer(own);
        elsewhere.push(format!("http://{address}/"));
    }
    for url in elsewhere {
        let reply = workspace
            .agent(&started, &["request", "GET", &url, "--timeout", "2"], false)
            .await;
        assert!(
            reply.get("answered").is_none(),
            "{url} was reached: {reply}"
        );
    }
    let (code, text) = workspace
        .run(&started, &["getent", "hosts", "example.org"])
        .await;
    assert_ne!(code, 0, "a name was resolved: {text}");
    workspace.delete().await;
}

async fn a_command_gives_its_code_and_both_streams(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let mut exec = Exec::new([
        "sh",
        "-c",
        "echo out; echo err >&2; pwd; echo $WORD; exit 7",
    ]);
    exec.env.insert("WORD".to_owned(), "a b".to_owned());
    exec.cwd = Some("/tmp".into());
    let output = bench
        .engine
        .exec(&started.instance, &exec)
        .await
        .expect("the command runs");
    assert_eq!(output.code, 7);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n/tmp\na b\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "err\n");
    let (code, _) = workspace.shell(&started, "kill -9 $$").await;
    assert_eq!(code, 137);
    workspace.delete().await;
}

async fn a_command_reads_its_input(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let mut exec = Exec::new(["wc", "-c"]);
    exec.stdin = vec![b'x'; 300_000];
    let (code, text) = workspace.exec(&started, &exec).await;
    assert_eq!((code, text.trim()), (0, "300000"));
    workspace.delete().await;
}

async fn a_command_may_write_much(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let (code, text) = workspace
        .shell(&started, "head -c 5000000 /dev/zero | tr '\\0' x")
        .await;
    assert_eq!((code, text.len()), (0, 5_000_000));
    workspace.delete().await;
}

async fn a_command_is_ended_at_its_limit(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let mut exec = Exec::new(["sleep", "60"]);
    exec.timeout = Duration::from_millis(500);
    let result = bench.engine.exec(&started.instance, &exec).await;
    assert!(
        matches!(result, Err(EngineError::ExecTimedOut { .. })),
        "{result:?}"
    );
    workspace.delete().await;
}

async fn processes_run_as_the_workspaces_user(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let (_, text) = workspace
        .shell(
            &started,
            "id -un; id -u; hostname; tr '\\0' ' ' < /proc/1/cmdline; touch ~/x && echo home",
        )
        .await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[..3], ["coder", "1000", "conformance"], "{text}");
    assert!(lines[3].contains("workspace-agent init"), "{text}");
    assert!(text.ends_with("home\n"), "{text}");
    workspace.delete().await;
}

async fn stop_scripts_run_within_the_grace(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(Some("sleep 0.2; date > ~/stopped")).await;
    workspace.stop(&started).await;
    let started = workspace.start(None).await;
    let (code, text) = workspace.shell(&started, "cat ~/stopped").await;
    assert_eq!(code, 0, "the stop script did not run to its end: {text}");
    workspace.delete().await;
}

async fn a_workspace_that_will_not_stop_is_killed(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(Some("sleep 40; date > ~/stopped")).await;
    let began = Instant::now();
    let by_itself = bench
        .engine
        .stop(&started.instance, Duration::from_secs(1))
        .await
        .expect("the workspace is ended");
    assert!(!by_itself, "it cannot have ended by itself");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let started = workspace.start(None).await;
    let (code, _) = workspace.shell(&started, "cat ~/stopped").await;
    assert_ne!(code, 0, "the stop script outlived the kill");
    workspace.delete().await;
}

async fn a_kill_runs_no_stop_script(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(Some("date > ~/stopped")).await;
    bench
        .engine
        .kill(&started.instance)
        .await
        .expect("it can be killed");
    let started = workspace.start(None).await;
    let (code, _) = workspace.shell(&started, "cat ~/stopped").await;
    assert_ne!(code, 0, "the stop script ran");
    workspace.delete().await;
}

async fn two_workspaces_see_nothing_of_each_other(bench: Bench) {
    let one = Workspace::new(&bench).await;
    let two = Workspace::new(&bench).await;
    let (first, second) = (one.start(None).await, two.start(None).await);
    one.agent(&first, &["plant-marks", "mark"], false).await;
    let found = two.agent(&second, &["find-marks", "mark"], false).await;
    assert_eq!(
        found,
        serde_json::json!({"home": false, "outside": [], "process": false})
    );
    one.delete().await;
    let (code, text) = two.shell(&second, "echo here").await;
    assert_eq!(code, 0, "deleting one workspace ended another: {text}");
    two.delete().await;
}

async fn the_machines_own_files_are_not_there(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let own = std::env::current_exe().expect("a test knows where it is");
    for path in [own.as_path(), own.parent().expect("it is in a directory")] {
        let look = ["test", "-e", &path.display().to_string()];
        let (code, _) = workspace.run(&started, &look).await;
        assert_eq!(code, 1, "{} can be seen", path.display());
    }
    workspace.delete().await;
}

async fn deleting_leaves_nothing(bench: Bench) {
    let workspace = Workspace::new(&bench).await;
    let started = workspace.start(None).await;
    let (code, text) = workspace
        .shell(
            &started,
            "mkdir -p ~/a/b && touch ~/a/b/c && chmod 500 ~/a/b ~/a",
        )
        .await;
    assert_eq!(code, 0, "{text}");
    let instance = started.instance.clone();
    workspace.delete().await;
    let result = bench.engine.exec(&instance, &Exec::new(["true"])).await;
    assert!(
        matches!(result, Err(EngineError::NotRunning(_))),
        "{result:?}"
    );
}
