//! A gateway that answers elsewhere records what one here would: over a link that is whole, and over one that breaks.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reprise_gateway::far::{DEPOT_PORT, Dial, Host, Opening, Stream, WIRE_PORT, greeting};
use reprise_gateway::{Gateway, Masker, ModelFault, Sink, WireLog};
use reprise_model::{Mark, NonceBook, Stamp, TurnRule, WorkspaceId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

struct Kept {
    began: Instant,
    lines: Mutex<Vec<String>>,
}

impl Sink for Kept {
    fn now(&self) -> Stamp {
        let us = self.began.elapsed().as_micros();
        Stamp::literal(u64::try_from(us).expect("a short test"))
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8(line.to_vec()).expect("a line is text");
        self.lines.lock().expect("nobody panics").push(line);
        Ok(())
    }
}

/// Dials the host's socket; each connection but the last few breaks after some bytes.
struct Breaking {
    socket: PathBuf,
    dialled: AtomicUsize,
    breaks: usize,
}

#[async_trait]
impl Dial for Breaking {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        let stream = UnixStream::connect(&self.socket).await?;
        if self.dialled.fetch_add(1, Ordering::SeqCst) >= self.breaks {
            return Ok(Box::new(stream));
        }
        let (near, far) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(stream);
            let (mut back, mut out) = tokio::io::split(far);
            let up = async { tokio::io::copy(&mut back, &mut write).await };
            // Enough for the first answer and a part of a line.
            let mut some = (&mut read).take(700);
            let down = async { tokio::io::copy(&mut some, &mut out).await };
            tokio::select! { _ = up => {}, _ = down => {} }
        });
        Ok(Box::new(near))
    }
}

async fn ask(workspace: WorkspaceId, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", WIRE_PORT)).await?;
    let request = format!(
        "{}POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        greeting(&workspace.to_string()),
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn put(socket: &PathBuf, name: &str, content: &[u8]) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket).await?;
    let opening = Opening::Put {
        name: name.to_owned(),
        bytes: content.len() as u64,
    };
    let mut line = serde_json::to_vec(&opening)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.write_all(content).await?;
    stream.shutdown().await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(said)
}

async fn fetch(name: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", DEPOT_PORT)).await?;
    stream
        .write_all(
            format!("GET /{name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes(),
        )
        .await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// One test, since a host's ports are fixed.
#[tokio::test]
async fn a_host_serves_workspaces_and_their_owners() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let socket = dir.path().join("host.sock");
    let (at, depot) = (socket.clone(), dir.path().to_owned());
    tokio::spawn(async move { Host::serve(&at, depot).await });
    while UnixStream::connect(&socket).await.is_err() {
        tokio::task::yield_now().await;
    }

    let book = NonceBook::draw();
    let workspace = WorkspaceId::draw();
    let kept = Arc::new(Kept {
        began: Instant::now(),
        lines: Mutex::default(),
    });
    let wire = WireLog::new(
        Arc::clone(&kept) as Arc<dyn Sink>,
        Masker::new(["correct horse battery"]),
    );
    let mut gateway = Gateway::new(book, TurnRule::Tools, wire);
    let dial = Breaking {
        socket: socket.clone(),
        dialled: AtomicUsize::new(0),
        breaks: 4,
    };
    gateway.serve_far(workspace, Arc::new(dial));
    gateway.set_epoch(3).await.expect("the host is reached");

    let tools = r#"[{"type":"function","function":{"name":"shell","parameters":{"properties":{"command":{"type":"string"}}}}}]"#;
    let prompt = book.nonce(Mark::Prompt);
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"task {prompt}, correct horse battery"}}],"tools":{tools}}}"#
    );
    for _ in 0..5 {
        let answer = ask(workspace, &body).await.expect("it answers");
        assert!(
            answer.contains(&book.nonce(Mark::Tool { epoch: 3 })),
            "{answer}"
        );
    }
    gateway
        .break_turns(vec![ModelFault::Status(429)])
        .await
        .expect("the host is reached");
    let refused = ask(workspace, &body).await.expect("it answers");
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    gateway.flush().await.expect("the host is reached");

    let exchanges = gateway.wire().exchanges();
    assert_eq!(exchanges.len(), 6);
    let now = u64::try_from(kept.began.elapsed().as_micros()).expect("a short test");
    for (place, exchange) in exchanges.iter().enumerate() {
        assert_eq!(exchange.request.seq, place as u64 + 1);
        assert_eq!(exchange.request.epoch, 3);
        assert!(exchange.request.at.us <= now);
        assert!(exchange.reply.is_some(), "{exchange:?}");
    }
    let lines = kept.lines.lock().expect("nobody panics").join("\n");
    assert_eq!(lines.lines().count(), 12, "each line once:\n{lines}");
    assert!(lines.contains(&prompt));
    assert!(
        !lines.contains("correct horse"),
        "masked by the owner:\n{lines}"
    );
    assert_eq!(gateway.wire().trouble(), None);

    let unknown = ask(WorkspaceId::draw(), &body).await;
    assert!(unknown.is_err() || unknown.is_ok_and(|answer| answer.is_empty()));

    // Who comes first waits.
    let early = tokio::spawn(fetch("blob-1"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        put(&socket, "blob-1", b"what a workspace needs")
            .await
            .expect("kept"),
        "kept\n"
    );
    let fetched = early.await.expect("no panic").expect("it answers");
    assert!(fetched.contains("what a workspace needs"), "{fetched}");
    assert!(
        put(&socket, "../x", b"y")
            .await
            .expect("refused")
            .is_empty()
    );
    assert!(
        fetch("..%2Fhost.sock")
            .await
            .expect("refused")
            .starts_with("HTTP/1.1 400")
    );
}
