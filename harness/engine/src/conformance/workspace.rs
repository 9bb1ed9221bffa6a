//! A case's workspace, and the gateway behind its door.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reprise_gateway::{Gateway, Masker, Sink, WireLog};
use reprise_model::{AgentEvent, InitSpec, NonceBook, RunId, Script, Stamp, TurnRule, WorkspaceId};
use serde_json::Value;

use super::Bench;
use crate::{
    Door, Exec, InjectedFile, Labels, Maker, Mount, Route, StartSpec, Started, TOOLS_DIR,
    init_command, with_causes,
};

/// A workspace of a case; deleted at its end.
pub(super) struct Workspace {
    pub(super) bench: Bench,
    pub(super) labels: Labels,
    pub(super) route: Route,
}

impl Workspace {
    pub(super) async fn new(bench: &Bench) -> Self {
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
            home: "/home/coder".to_owned(),
            directory: "/home/coder".to_owned(),
            stop_deadline: 50,
            ..InitSpec::default()
        };
        let program = format!("{TOOLS_DIR}/reprise");
        StartSpec {
            labels: self.labels.clone(),
            hostname: "conformance".to_owned(),
            gateway: self.route.address,
            home: "/home/coder".into(),
            init: init_command(),
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

    pub(super) async fn start(&self, stop_script: Option<&str>) -> Started {
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

    pub(super) async fn run(&self, started: &Started, argv: &[&str]) -> (i32, String) {
        self.exec(started, &Exec::new(argv.iter().copied())).await
    }

    pub(super) async fn exec(&self, started: &Started, exec: &Exec) -> (i32, String) {
        let output = self
            .bench
            .engine
            .exec(&started.instance, exec)
            .await
            .expect("the command runs");
        (output.code, output.text())
    }

    pub(super) async fn shell(&self, started: &Started, script: &str) -> (i32, String) {
        self.run(started, &["sh", "-c", script]).await
    }

    pub(super) async fn agent(&self, started: &Started, args: &[&str], privileged: bool) -> Value {
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

    pub(super) async fn stop(&self, started: &Started) {
        let by_itself = self
            .bench
            .engine
            .stop(&started.instance, Duration::from_secs(10))
            .await
            .expect("the workspace stops");
        assert!(by_itself, "PID 1 had to be killed");
    }

    pub(super) async fn delete(self) {
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
        return with_causes(&error);
    }
    let workspace = Workspace::new(bench).await;
    let refused = bench.engine.start(&workspace.spec(None)).await;
    workspace.delete().await;
    with_causes(&refused.expect_err("it must not start"))
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
pub(super) struct Serving(Gateway);

impl Serving {
    pub(super) fn new() -> Self {
        let wire = WireLog::new(Arc::new(Unread), Masker::new([]));
        Self(Gateway::new(NonceBook::draw(), TurnRule::Tools, wire))
    }

    pub(super) async fn open(&mut self, workspace: WorkspaceId, door: Door) {
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
