//! The gateway over real sockets: what a client gets, and what is recorded of it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reprise_gateway::{Gateway, Masker, ModelFault, Sink, WireLog};
use reprise_model::{Class, Mark, NonceBook, ReplyEnd, SnapshotFault, Stamp, TurnRule, WireLine};
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
    for (fault, status) in [
        (SnapshotFault::Unauthorized, 401),
        (SnapshotFault::Unknown, 404),
        (SnapshotFault::ServerError, 500),
    ] {
        bench.gateway.control().set_fault(Some(fault));
        assert_eq!(post().await.expect("answered").status(), status);
    }
    bench.gateway.control().set_fault(Some(SnapshotFault::Down));
    match post().await {
        Err(_) => {}
        Ok(answer) => assert!(answer.bytes().await.is_err(), "it breaks off"),
    }
    bench.gateway.control().set_fault(None);
    let (status, _) = bench.post(path, "{}").await;
    assert_eq!(status, 401, "no token was sent");
    let (status, _) = bench.post(&format!("/{path}"), "{}").await;
    assert_eq!(status, 401, "a slash more is the same place");
    let (status, _) = bench.post("/api/v2/users/me", "{}").await;
    assert_eq!(status, 404);
}

/// What each API's turn looks like on the wire: path, body, and what a streamed reply ends with.
fn turns(prompt: &str) -> [(&'static str, Value, &'static str); 4] {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    [
        (
            "/v1/chat/completions",
            json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": prompt}],
                "tools": [{"type": "function", "function": {"name": "shell", "parameters": schema}}]}),
            "data: [DONE]",
        ),
        (
            "/v1/responses",
            json!({"model": "m", "stream": true, "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}],
                "tools": [{"type": "function", "name": "shell", "parameters": schema}]}),
            "event: response.completed",
        ),
        (
            "/v1/messages?beta=true",
            json!({"model": "m", "stream": true, "max_tokens": 9, "messages": [{"role": "user", "content": prompt}],
                "tools": [{"name": "Bash", "input_schema": schema}]}),
            "event: message_stop",
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}],
                "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parameters": schema}]}]}),
            "\"finishReason\":\"STOP\"",
        ),
    ]
}

#[tokio::test]
async fn every_api_answers_the_task_with_a_tool_call() {
    let bench = bench();
    let prompt = bench.book.nonce(Mark::Prompt);
    for (path, body, end) in turns(&prompt) {
        let (status, reply) = bench.post(path, body.to_string()).await;
        assert_eq!(status, 200, "{path}: {reply}");
        assert!(reply.contains(end), "{path}: {reply}");
        let exchange = bench
            .gateway
            .wire()
            .exchanges()
            .pop()
            .expect("it was recorded");
        assert_eq!(exchange.request.class, Class::Main, "{path}");
        let marks = exchange.reply.expect("it was replied to").marks;
        assert_eq!(marks, [Mark::Tool { epoch: 0 }], "{path}");
    }
}

#[tokio::test]
async fn every_api_can_refuse_and_break_off() {
    let bench = bench();
    let prompt = bench.book.nonce(Mark::Prompt);
    for (path, body, end) in turns(&prompt) {
        bench
            .gateway
            .break_turns(vec![
                ModelFault::Status(429),
                ModelFault::Status(500),
                ModelFault::BrokenStream,
            ])
            .await
            .expect("it is served here");
        for status in [429, 500] {
            let (got, reply) = bench.post(path, body.to_string()).await;
            assert_eq!(got, status, "{path}");
            let error: Value = serde_json::from_str(&reply).expect("an error is JSON");
            assert!(error["error"]["message"].is_string(), "{path}: {reply}");
        }
        // Whether its head still gets out is the server's affair.
        let broken = async {
            let request = reqwest::Client::new().post(format!("http://{}{path}", bench.address));
            request.body(body.to_string()).send().await?.text().await
        };
        assert!(broken.await.is_err(), "{path}: the reply breaks off");
        let exchange = bench
            .gateway
            .wire()
            .exchanges()
            .pop()
            .expect("it was recorded");
        let reply = exchange.reply.expect("its end was recorded");
        assert_eq!(
            (reply.end, reply.marks),
            (ReplyEnd::Broken, vec![]),
            "{path}"
        );
        let (status, reply) = bench.post(path, body.to_string()).await;
        assert!(
            status == 200 && reply.contains(end),
            "{path}: a retry is served"
        );
    }
}

#[tokio::test]
async fn tokens_are_counted_and_models_listed() {
    let bench = bench();
    for (path, field) in [
        ("/v1/messages/count_tokens", "input_tokens"),
        ("/v1beta/models/m:countTokens", "totalTokens"),
    ] {
        let (status, body) = bench.post(path, "x".repeat(40)).await;
        let body: Value = serde_json::from_str(&body).expect("it is JSON");
        assert_eq!((status, body[field].as_u64()), (200, Some(10)), "{path}");
    }
    for (path, anthropic, list) in [
        ("/v1/models", false, "data"),
        ("/v1/models", true, "data"),
        ("/v1beta/models", false, "models"),
    ] {
        let mut request = reqwest::Client::new().get(format!("http://{}{path}", bench.address));
        if anthropic {
            request = request.header("anthropic-version", "2023-06-01");
        }
        let body: Value = request
            .send()
            .await
            .expect("answered")
            .json()
            .await
            .expect("JSON");
        assert_eq!(body[list].as_array().map(Vec::len), Some(1), "{path}");
        assert_eq!(body["has_more"].is_boolean(), anthropic);
    }
}

#[tokio::test]
async fn a_title_is_no_turn_and_holds_no_nonce() {
    let bench = bench();
    let prompt = bench.book.nonce(Mark::Prompt);
    let title = json!({"model": "m", "max_tokens": 9, "output_config": {"format": {"type": "json_schema"}},
        "messages": [{"role": "user", "content": format!("<session>{prompt}</session>")}]});
    let (status, reply) = bench.post("/v1/messages", title.to_string()).await;
    assert_eq!(status, 200);
    let reply: Value = serde_json::from_str(&reply).expect("it is JSON");
    let text = reply["content"][0]["text"].as_str().expect("it has words");
    let title: Value = serde_json::from_str(text).expect("the words are JSON, as asked");
    assert!(title["title"].is_string());
    let exchange = bench
        .gateway
        .wire()
        .exchanges()
        .pop()
        .expect("it was recorded");
    assert_eq!(exchange.request.class, Class::Side);
    assert_eq!(exchange.reply.expect("it was replied to").marks, []);
}
