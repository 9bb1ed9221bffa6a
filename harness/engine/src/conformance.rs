//! What every engine must do, as cases that a test runs by name. A case panics with what it saw.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use reprise_gateway::{Gateway, Masker, Sink, WireLog};
use reprise_model::{AgentEvent, InitSpec, NonceBook, RunId, Script, Stamp, TurnRule, WorkspaceId};
use serde_json::Value;

use crate::{
    Door, Engine, EngineError, Exec, InjectedFile, Labels, Maker, Mount, Route, START_FILES,
    StartSpec, Started, TOOLS_DIR,
};

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
    deleting_leaves_nothing,
];

/// A workspace of a case; deleted at its end.
struct Workspace {
    bench: Bench,
    labels: Labels,
    route: Route,
}

impl Workspace {
    async fn new(bench: &Bench) -> Self {
        bench
            .engine
            .prepare(&|_| ())
            .await
            .expect("the engine can be prepared");
        let labels = Labels {
            maker: Maker::this(RunId::draw()),
            workspace: WorkspaceId::draw(),
        };
        let route = bench
            .engine
            .create(&labels, None)
            .await
            .expect("a workspace can be created");
        Self {
            bench: bench.clone(),
            labels,
            route,
        }
    }

    fn spec(&self, stop_script: Option<&str>) -> StartSpec {
        let init = InitSpec {
            scripts: stop_script
                .map(|script| Script {
                    display_name: "stop".to_owned(),
                    script: script.to_owned(),
                    run_on_start: false,
                    run_on_stop: true,
                    timeout: 0,
                    log_path: None,
                })
                .into_iter()
                .collect(),
            env: BTreeMap::new(),
            home: "/home/coder".to_owned(),
            directory: "/home/coder".to_owned(),
            stop_deadline: 50,
            probe_home: false,
            files: None,
            keep_only: None,
        };
        let program = format!("{TOOLS_DIR}/reprise");
        StartSpec {
            labels: self.labels.clone(),
            hostname: "conformance".to_owned(),
            gateway: self.route.address,
            home: "/home/coder".into(),
            init: vec![
                program.clone(),
                "workspace-agent".to_owned(),
                "init".to_owned(),
                format!("{START_FILES}/spec.json"),
            ],
            env: BTreeMap::from([
                ("HOME".to_owned(), "/home/coder".to_owned()),
                (
                    "PATH".to_owned(),
                    format!("{TOOLS_DIR}:/usr/local/bin:/usr/bin:/bin"),
                ),
            ]),
            mounts: vec![Mount {
                source: self.bench.program.clone(),
                target: program.into(),
            }],
            files: vec![InjectedFile {
                name: "spec.json".to_owned(),
                content: serde_json::to_string(&init).expect("a spec is JSON"),
            }],
            in_place: false,
            same_name: false,
        }
    }

    async fn start(&self, stop_script: Option<&str>) -> Started {
        let mut started = self
            .bench
            .engine
            .start(&self.spec(stop_script))
            .await
            .expect("the workspace starts");
        let first = started.lines.recv().await.expect("PID 1 speaks");
        let event: AgentEvent =
            serde_json::from_str(&first).unwrap_or_else(|_| panic!("PID 1 said: {first}"));
        assert!(matches!(event, AgentEvent::Booted { .. }), "{event:?}");
        started
    }

    async fn run(&self, started: &Started, argv: &[&str]) -> (i32, String) {
        self.exec(started, &Exec::new(argv.iter().copied())).await
    }

    async fn exec(&self, started: &Started, exec: &Exec) -> (i32, String) {
        let output = self
            .bench
            .engine
            .exec(&started.instance, exec)
            .await
            .expect("the command runs");
        (output.code, output.text())
    }

    async fn shell(&self, started: &Started, script: &str) -> (i32, String) {
        self.run(started, &["sh", "-c", script]).await
    }

    async fn agent(&self, started: &Started, args: &[&str], privileged: bool) -> Value {
        let program = format!("{TOOLS_DIR}/reprise");
        let mut exec = Exec::new(
            [program.as_str(), "workspace-agent"]
                .iter()
                .chain(args)
                .copied(),
        );
        exec.privileged = privileged;
        exec.env.insert("HOME".to_owned(), "/home/coder".to_owned());
        let (code, text) = self.exec(started, &exec).await;
        assert_eq!(code, 0, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }

    async fn stop(&self, started: &Started) {
        let by_itself = self
            .bench
            .engine
            .stop(&started.instance, Duration::from_secs(10))
            .await
            .expect("the workspace stops");
        assert!(by_itself, "PID 1 had to be killed");
    }

    async fn delete(self) {
        let workspace = self.labels.workspace;
        self.bench
            .engine
            .delete(workspace)
            .await
            .expect("the workspace can be deleted");
        let left: Vec<_> = self
            .bench
            .engine
            .leftovers()
            .await
            .expect("leftovers can be listed")
            .into_iter()
            .filter(|left| left.workspace == Some(workspace))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// What an engine that cannot start a workspace says: of its preparation, or of the start.
pub async fn first_refusal(bench: &Bench) -> String {
    if let Err(error) = bench.engine.prepare(&|_| ()).await {
        return in_full(&error);
    }
    let workspace = Workspace::new(bench).await;
    let refused = bench.engine.start(&workspace.spec(None)).await;
    workspace.delete().await;
    in_full(&refused.expect_err("it must not start"))
}

/// An error with what it comes from.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

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

/// A wire that nobody reads.
struct Unread;

impl Sink for Unread {
    fn now(&self) -> Stamp {
        Stamp::literal(0)
    }

    fn line(&self, _line: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serves a workspace's gateway at its doors.
struct Serving(Gateway);

impl Serving {
    fn new() -> Self {
        let wire = WireLog::new(Arc::new(Unread), Masker::new([]));
        Self(Gateway::new(NonceBook::draw(), TurnRule::Tools, wire))
    }

    async fn open(&mut self, workspace: WorkspaceId, door: Door) {
        match door {
            Door::Tcp(listener) => self.0.serve_tcp(listener).expect("a socket can be served"),
            Door::Unix(listener) => self.0.serve_unix(listener).expect("a socket can be served"),
            Door::Far(dial) => {
                self.0.serve_far(workspace, dial);
                self.0.set_epoch(0).await.expect("the host is reached");
            }
        }
    }
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
