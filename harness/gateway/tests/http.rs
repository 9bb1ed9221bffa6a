//! The gateway over real sockets: what a client gets, and what is recorded of it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reprise_gateway::{Fault, Gateway, Masker, Sink, WireLog};
use reprise_model::{Class, Mark, NonceBook, ReplyEnd, Stamp, TurnRule, WireLine};
use serde_json::{Value, json};

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Sink for Lines {
    fn now(&self) -> Stamp {
        Stamp::literal(0)
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8(line.to_vec()).expect("lines are text");
        self.0.lock().expect("no test panics with it").push(line);
        Ok(())
    }
}

struct Bench {
    gateway: Gateway,
    lines: Arc<Lines>,
    book: NonceBook,
    address: SocketAddr,
}

fn bench() -> Bench {
    let lines = Arc::new(Lines::default());
    let book = NonceBook::draw();
    let wire = WireLog::new(
        Arc::clone(&lines) as Arc<dyn Sink>,
        Masker::new(["canary-value"]),
    );
    let mut gateway = Gateway::new(book, TurnRule::Tools, wire);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    gateway.serve_tcp(listener).expect("it can be served");
    Bench {
        gateway,
        lines,
        book,
        address,
    }
}

impl Bench {
    async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
        let response = reqwest::Client::new()
            .post(format!("http://{}{path}", self.address))
            .body(body)
            .send()
            .await
            .expect("the gateway answers");
        let status = response.status().as_u16();
        (status, response.text().await.expect("a body"))
    }

    fn turn(&self, stream: bool) -> String {
        json!({
            "model": "m",
            "stream": stream,
            "messages": [{"role": "user", "content": format!("task {}", self.book.nonce(Mark::Prompt))}],
            "tools": [{"type": "function", "function": {"name": "shell", "parameters": {"properties": {"command": {}}}}}],
        })
        .to_string()
    }
}

#[tokio::test]
async fn a_turn_is_answered_and_recorded() {
    let bench = bench();
    for stream in [false, true] {
        let (status, body) = bench.post("/v1/chat/completions", bench.turn(stream)).await;
        assert_eq!(status, 200);
        assert!(
            body.contains(&bench.book.nonce(Mark::Tool { epoch: 0 })),
            "{body}"
        );
        assert_eq!(body.contains("data: [DONE]"), stream);
    }
    let exchanges = bench.gateway.wire().exchanges();
    assert_eq!(exchanges.len(), 2);
    for exchange in exchanges {
        assert_eq!(exchange.request.class, Class::Main);
        let reply = exchange.reply.expect("it was replied to");
        assert_eq!(reply.end, ReplyEnd::Complete);
        assert_eq!(reply.marks, [Mark::Tool { epoch: 0 }]);
    }
    let lines = bench.lines.0.lock().expect("no test panics with it");
    let first: Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!(first["request"]["class"], "main");
    assert_eq!(first["request"]["body"]["model"], "m");
    for line in lines.iter() {
        let _: WireLine = serde_json::from_str(line).expect("a reader takes every line");
    }
}

#[tokio::test]
async fn nonsense_is_refused_and_recorded() {
    let bench = bench();
    for (path, body, status) in [
        ("/v1/chat/completions", &b"{"[..], 400),
        (
            "/v1/chat/completions",
            br#"{"messages":[{"role":"king"}]}"#,
            400,
        ),
        ("/v1/chat/completions", &[0xff, 0xfe, b'\n'], 400),
        ("/v1/no/such/path", b"x", 404),
    ] {
        let (got, _) = bench.post(path, body.to_vec()).await;
        assert_eq!(got, status, "{path}");
    }
    let exchanges = bench.gateway.wire().exchanges();
    assert_eq!(exchanges.len(), 4);
    for exchange in exchanges {
        assert_eq!(exchange.request.class, Class::Malformed);
        assert!(exchange.request.problem.is_some());
    }
}

#[tokio::test]
async fn secrets_never_reach_the_record() {
    let bench = bench();
    let key = format!("sk-{}", "0a".repeat(12));
    let body = json!({"messages": [{"role": "user", "content": format!("{key} canary-value")}], "note": key});
    bench.post("/v1/chat/completions", body.to_string()).await;
    bench
        .post("/v1/chat/completions", format!("not json {key}"))
        .await;
    bench
        .post(&format!("/v1/x?key={key}"), "canary-value")
        .await;
    let lines = bench
        .lines
        .0
        .lock()
        .expect("no test panics with it")
        .join("\n");
    assert!(lines.contains("[masked]"));
    assert!(
        !lines.contains(&key) && !lines.contains("canary-value"),
        "{lines}"
    );
}

#[tokio::test]
async fn a_large_body_is_kept_whole() {
    let bench = bench();
    let text = "x".repeat(30 << 20);
    let body = json!({"messages": [{"role": "user", "content": text}]}).to_string();
    let length = body.len();
    let (status, _) = bench.post("/v1/chat/completions", body).await;
    assert_eq!(status, 200);
    let lines = bench.lines.0.lock().expect("no test panics with it");
    assert!(lines[0].len() > length);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_a_broken_reply_or_a_whole_one() {
    let bench = bench();
    let body = bench.turn(true);
    let mut stream = TcpStream::connect(bench.address).expect("it listens");
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it takes the request");
    let _ = stream.read(&mut [0; 16]);
    drop(stream);
    let mut changes = bench.gateway.wire().changes();
    let replied = || {
        bench
            .gateway
            .wire()
            .exchanges()
            .iter()
            .any(|e| e.reply.is_some())
    };
    tokio::time::timeout(Duration::from_secs(5), changes.wait_for(|_| replied()))
        .await
        .expect("the end of the reply is recorded in time")
        .expect("the log is there");
}

#[tokio::test]
async fn the_control_plane_fails_on_demand() {
    let bench = bench();
    let path = "/api/v2/workspaceagents/me/tasks/1/log-snapshot?format=agentapi";
    let client = reqwest::Client::new();
    let post = || {
        client
            .post(format!("http://{}{path}", bench.address))
            .header("Coder-Session-Token", "t")
            .body("{}")
            .send()
    };
    assert_eq!(post().await.expect("answered").status(), 204);
    bench.gateway.control().set_fault(Some(Fault::Status(404)));
    assert_eq!(post().await.expect("answered").status(), 404);
    bench
        .gateway
        .control()
        .set_fault(Some(Fault::Slow(Duration::from_millis(50))));
    assert_eq!(post().await.expect("answered").status(), 204);
    bench.gateway.control().set_fault(None);
    let (status, _) = bench.post(path, "{}").await;
    assert_eq!(status, 401, "no token was sent");
    let (status, _) = bench.post("/api/v2/users/me", "{}").await;
    assert_eq!(status, 404);
}
