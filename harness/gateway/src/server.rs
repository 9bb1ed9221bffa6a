//! Serves doors: takes each request, records it, answers it, records how the answer ended.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use bytes::Bytes;
use futures::{StreamExt, stream};
use reprise_model::{
    Class, HoldPoint, Mark, NonceBook, Protocol, Reply, ReplyEnd, Request as Record, SnapshotFault,
    TurnRule, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;

use crate::far::{Dial, Link, Remote};
use crate::protocol::{self, Call};
use crate::{ControlPlane, WireLog, script};

const SESSION_TOKEN: HeaderName = HeaderName::from_static("coder-session-token");

/// Sent by every client of Anthropic's (<https://docs.anthropic.com/en/api/versioning>).
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// What goes wrong with one of the agent's own turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// An error of the API, such as 429 or 500, instead of the reply.
    Status(u16),
    /// The reply ends in its middle.
    BrokenStream,
    /// It gets no further than this.
    Hold(HoldPoint),
    /// The reply is very long.
    AtLength,
}

/// One workspace's gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    servers: Vec<AbortHandle>,
    /// Where it is served, if not here.
    link: Option<Link>,
}

struct Shared {
    book: NonceBook,
    rule: TurnRule,
    faults: Mutex<Vec<ModelFault>>,
    epoch: AtomicU32,
    wire: WireLog,
    control: ControlPlane,
}

impl Gateway {
    /// A gateway that answers with `book`'s nonces, tells the agent's turns from its side requests by `rule`, and records
    /// to `wire`.
    #[must_use]
    pub fn new(book: NonceBook, rule: TurnRule, wire: WireLog) -> Self {
        Self {
            shared: Arc::new(Shared {
                book,
                rule,
                faults: Mutex::default(),
                epoch: AtomicU32::new(0),
                wire,
                control: ControlPlane::default(),
            }),
            servers: Vec::new(),
            link: None,
        }
    }

    /// Tells which start of the workspace requests belong to from now on.
    ///
    /// # Errors
    /// If it is served elsewhere, and that place is not reached any more.
    pub async fn set_epoch(&self, epoch: u32) -> io::Result<()> {
        self.here_epoch(epoch);
        match &self.link {
            Some(link) => link.set_epoch(epoch).await,
            None => Ok(()),
        }
    }

    /// Makes the agent's next turns go wrong, one fault each.
    ///
    /// # Errors
    /// If it is served elsewhere, and that place is not reached any more.
    pub async fn break_turns(&self, faults: Vec<ModelFault>) -> io::Result<()> {
        match &self.link {
            Some(link) => link.break_turns(faults).await,
            None => {
                self.here_break(faults);
                Ok(())
            }
        }
    }

    /// Makes log snapshots go wrong, or right again.
    ///
    /// # Errors
    /// If it is served elsewhere, and that place is not reached any more.
    pub async fn break_snapshots(&self, fault: Option<SnapshotFault>) -> io::Result<()> {
        match &self.link {
            Some(link) => link.break_snapshots(fault).await,
            None => {
                self.control().set_fault(fault);
                Ok(())
            }
        }
    }

    /// Waits until everything that has crossed the wire is recorded.
    ///
    /// # Errors
    /// If it is served elsewhere, and that place is not reached any more.
    pub async fn flush(&self) -> io::Result<()> {
        match &self.link {
            Some(link) => link.flush().await,
            None => Ok(()),
        }
    }

    pub(crate) fn here_epoch(&self, epoch: u32) {
        self.shared.epoch.store(epoch, Ordering::SeqCst);
    }

    pub(crate) fn here_break(&self, faults: Vec<ModelFault>) {
        let mut planned = self.shared.faults();
        planned.clear();
        planned.extend(faults);
        planned.reverse();
    }

    /// What was recorded.
    #[must_use]
    pub fn wire(&self) -> &WireLog {
        &self.shared.wire
    }

    /// The control plane's double.
    #[must_use]
    pub fn control(&self) -> &ControlPlane {
        &self.shared.control
    }

    fn router(&self) -> Router {
        Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&self.shared))
    }

    /// Serves a socket of a workspace's own network until the gateway is dropped.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn serve_tcp(&mut self, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
            // Only a matter of speed.
            let _ = stream.set_nodelay(true);
        });
        self.serve(listener);
        Ok(())
    }

    /// Serves a socket that is mounted into a workspace until the gateway is dropped.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn serve_unix(&mut self, listener: std::os::unix::net::UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.serve(tokio::net::UnixListener::from_std(listener)?);
        Ok(())
    }

    /// Has a [`far::Host`](crate::far::Host) answer in this gateway's place, until this one is dropped.
    pub fn serve_far(&mut self, workspace: WorkspaceId, dial: Arc<dyn Dial>) {
        let remote = Remote {
            workspace,
            book: self.shared.book,
            rule: self.shared.rule,
            wire: self.shared.wire.clone(),
        };
        self.link = Some(Link::open(dial, remote));
    }

    pub(crate) fn serve<L>(&mut self, listener: L)
    where
        L: axum::serve::Listener,
        L::Addr: std::fmt::Debug,
    {
        let router = self.router();
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        self.servers.push(server.abort_handle());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
    }
}

impl Shared {
    /// The faults still to come, the next one last.
    fn faults(&self) -> std::sync::MutexGuard<'_, Vec<ModelFault>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let method = head.method.as_str().to_owned();
    let path = head.uri.to_string();
    let epoch = shared.epoch.load(Ordering::SeqCst);
    let body = match to_bytes(body, usize::MAX).await {
        Ok(body) => body,
        Err(error) => {
            let arrived = Arrived::new(epoch, method, path, &[]);
            let record = arrived.record(&shared, Class::Malformed, Some(error.to_string()));
            let seq = shared.wire.request(record, &[]);
            return finish(
                &shared,
                seq,
                None,
                (StatusCode::BAD_REQUEST, "the body broke off").into_response(),
            );
        }
    };
    let arrived = Arrived::new(epoch, method, path, &body);
    if ControlPlane::owns(&arrived.path) {
        let mut record = arrived.record(&shared, Class::Control, None);
        match crate::shown(&body, &shared.book) {
            Ok(messages) => record.conversation = messages,
            Err(error) => record.problem = Some(error.to_string()),
        }
        let seq = shared.wire.request(record, &body);
        let authorized = head.headers.contains_key(SESSION_TOKEN);
        let response = shared
            .control
            .answer(&arrived.method, &arrived.path, authorized, body.len())
            .await;
        return finish(&shared, seq, None, response);
    }
    let anthropic = head.headers.contains_key(ANTHROPIC_VERSION);
    match protocol::of(&arrived.method, &arrived.path, anthropic) {
        None => {
            let problem = format!("no model API has {} {}", arrived.method, arrived.path);
            let record = arrived.record(&shared, Class::Malformed, Some(problem.clone()));
            let seq = shared.wire.request(record, &body);
            finish(
                &shared,
                seq,
                None,
                (StatusCode::NOT_FOUND, problem).into_response(),
            )
        }
        Some(Call::Models(protocol)) => {
            let mut record = arrived.record(&shared, Class::Catalogue, None);
            record.protocol = Some(protocol);
            let seq = shared.wire.request(record, &body);
            finish(&shared, seq, None, protocol::models(protocol))
        }
        Some(Call::Tokens(protocol)) => {
            let mut record = arrived.record(&shared, Class::Side, None);
            record.protocol = Some(protocol);
            let seq = shared.wire.request(record, &body);
            finish(&shared, seq, None, protocol::tokens(protocol, &body))
        }
        Some(Call::Turn(protocol)) => take_turn(&shared, protocol, &arrived, &body),
    }
}

fn take_turn(shared: &Arc<Shared>, protocol: Protocol, arrived: &Arrived, body: &[u8]) -> Response {
    let turn = match protocol::parse(protocol, &arrived.path, body, &shared.book) {
        Ok(turn) => turn,
        Err(malformed) => {
            let problem = malformed.to_string();
            let mut record = arrived.record(shared, Class::Malformed, Some(problem.clone()));
            record.protocol = Some(protocol);
            let seq = shared.wire.request(record, body);
            return finish(shared, seq, None, protocol::refuse(protocol, 400, &problem));
        }
    };
    let main = protocol::is_main(protocol, &turn, shared.rule);
    let class = if main { Class::Main } else { Class::Side };
    let mut record = arrived.record(shared, class, None);
    record.protocol = Some(protocol);
    record.tools = turn.tools;
    record.conversation.clone_from(&turn.conversation);
    let seq = shared.wire.request(record, body);
    let fault = main.then(|| shared.faults().pop()).flatten();
    if let Some(ModelFault::Status(status)) = fault {
        let words = "the model was told to refuse this turn";
        return finish(shared, seq, None, protocol::refuse(protocol, status, words));
    }
    let (mut answer, mut mark) = script::answer(&turn, main, &shared.book, arrived.epoch);
    match (fault, &turn.shell) {
        (Some(ModelFault::Hold(HoldPoint::Request)), _) => return held(shared, seq, Vec::new()),
        (Some(ModelFault::Hold(HoldPoint::ToolCall)), Some(tool)) => {
            (answer, mark) = script::endless(tool.clone(), &shared.book, arrived.epoch);
        }
        (Some(ModelFault::AtLength), _) => answer = script::at_length(answer, seq),
        _ => {}
    }
    let mut reply = protocol::reply(protocol, &arrived.path, &turn, &answer, seq);
    if fault == Some(ModelFault::Hold(HoldPoint::Reply)) {
        reply.pieces.truncate(reply.pieces.len() / 2);
        let response = held(shared, seq, reply.pieces);
        return ([(header::CONTENT_TYPE, reply.content_type)], response).into_response();
    }
    let (mark, end) = if fault == Some(ModelFault::BrokenStream) {
        // Half of the answer's words, and then nothing: what was said of it so far holds no whole nonce.
        reply.pieces.truncate(reply.pieces.len() / 2);
        (None, Some(io::ErrorKind::ConnectionReset))
    } else {
        (mark, None)
    };
    let body = watched(shared, seq, 200, mark, reply.pieces, end);
    ([(header::CONTENT_TYPE, reply.content_type)], body).into_response()
}

/// A response that gets no further than `pieces`, for as long as its client waits.
fn held(shared: &Arc<Shared>, seq: u64, pieces: Vec<Bytes>) -> Response {
    let watch = Watch {
        shared: Arc::clone(shared),
        seq,
        status: 200,
        mark: None,
        end: ReplyEnd::Broken,
    };
    let pieces = stream::iter(pieces.into_iter().map(Ok::<_, io::Error>));
    let nothing = stream::once(async move {
        let _watch = watch;
        std::future::pending().await
    });
    Body::from_stream(pieces.chain(nothing)).into_response()
}

/// A request as it came in.
struct Arrived {
    epoch: u32,
    method: String,
    path: String,
    bytes: u64,
}

impl Arrived {
    fn new(epoch: u32, method: String, path: String, body: &[u8]) -> Self {
        Self {
            epoch,
            method,
            path,
            bytes: body.len() as u64,
        }
    }

    fn record(&self, shared: &Shared, class: Class, problem: Option<String>) -> Record {
        Record {
            seq: 0,
            at: shared.wire.now(),
            epoch: self.epoch,
            method: self.method.clone(),
            path: self.path.clone(),
            protocol: None,
            class,
            tools: 0,
            conversation: Vec::new(),
            bytes: self.bytes,
            problem,
        }
    }
}

/// A response whose body is small and known: recorded as taken when it is handed over.
fn finish(shared: &Arc<Shared>, seq: u64, mark: Option<Mark>, response: Response) -> Response {
    shared.wire.reply(Reply {
        seq,
        at: shared.wire.now(),
        status: response.status().as_u16(),
        end: ReplyEnd::Complete,
        marks: mark.into_iter().collect(),
    });
    response
}

/// Records how a reply ended when it is dropped: complete if all of it was taken.
struct Watch {
    shared: Arc<Shared>,
    seq: u64,
    status: u16,
    mark: Option<Mark>,
    end: ReplyEnd,
}

impl Watch {
    fn complete(mut self) {
        self.end = ReplyEnd::Complete;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.wire.reply(Reply {
            seq: self.seq,
            at: self.shared.wire.now(),
            status: self.status,
            end: self.end,
            marks: self.mark.into_iter().collect(),
        });
    }
}

fn watched(
    shared: &Arc<Shared>,
    seq: u64,
    status: u16,
    mark: Option<Mark>,
    pieces: Vec<Bytes>,
    broken: Option<io::ErrorKind>,
) -> Body {
    let watch = Watch {
        shared: Arc::clone(shared),
        seq,
        status,
        mark,
        end: ReplyEnd::Broken,
    };
    let state = (pieces.into_iter(), watch);
    Body::from_stream(stream::unfold(
        state,
        move |(mut pieces, watch)| async move {
            match (pieces.next(), broken) {
                (Some(piece), _) => Some((Ok(piece), (pieces, watch))),
                (None, Some(kind)) => Some((Err(io::Error::from(kind)), (pieces, watch))),
                // Asked for more than there is: all of it was taken.
                (None, None) => {
                    watch.complete();
                    None
                }
            }
        },
    ))
}
