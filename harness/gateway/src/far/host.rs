//! The end beside the workspaces: one gateway for each, and a depot of what they fetch when they start.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use reprise_model::{NonceBook, Stamp, TurnRule, WorkspaceId};
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf, copy,
};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio_util::io::ReaderStream;

use super::{Numbered, Opening, Order, Report};
use crate::{Gateway, Masker, Sink, WireLog};

/// Where workspaces reach their gateway: a connection begins with a [`greeting`].
pub const WIRE_PORT: u16 = 8377;

/// Where workspaces fetch what was put: `GET /NAME` answers when it is there.
pub const DEPOT_PORT: u16 = 8378;

/// Where nobody shall come: what a network policy must refuse, so that it can be tried.
pub const SHUT_PORT: u16 = 8379;

/// How long a workspace waits for something that was not put yet.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest greeting: a workspace's id and a line's end.
const GREETING: u64 = 64;

/// What a workspace's connection begins with.
#[must_use]
pub fn greeting(workspace: &str) -> String {
    format!("{workspace}\n")
}

/// Why a host cannot serve.
#[derive(Debug, Error)]
pub enum HostError {
    /// A socket cannot be had.
    #[error("cannot listen on {place}: {source}")]
    Listen {
        /// Which.
        place: String,
        /// Why not.
        source: io::Error,
    },
}

/// Serves workspaces and the links to their owners.
#[derive(Debug)]
pub struct Host {
    depot: PathBuf,
    sessions: Mutex<HashMap<WorkspaceId, Arc<Session>>>,
    /// Changes with everything that was put.
    put: watch::Sender<u64>,
}

/// One workspace's gateway here, and the lines its owner does not have yet.
struct Session {
    gateway: Mutex<Gateway>,
    lines: Arc<Lines>,
    guests: mpsc::Sender<BufReader<TcpStream>>,
    /// The last order that was carried out.
    done: Mutex<u64>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// The wire's lines, by number.
struct Lines {
    began: Instant,
    kept: Mutex<Kept>,
    count: watch::Sender<usize>,
}

/// The lines that the owner may not have, and how many there were before them.
#[derive(Default)]
struct Kept {
    before: usize,
    lines: VecDeque<Arc<RawValue>>,
}

impl Kept {
    fn from(&self, number: usize) -> Vec<Arc<RawValue>> {
        let skip = number.saturating_sub(self.before);
        self.lines.iter().skip(skip).cloned().collect()
    }

    fn forget(&mut self, below: usize) {
        let known = below.saturating_sub(self.before).min(self.lines.len());
        self.lines.drain(..known);
        self.before += known;
    }
}

impl Lines {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Sink for Lines {
    fn now(&self) -> Stamp {
        Stamp {
            us: self.us(),
            wall: jiff::Timestamp::now(),
        }
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8_lossy(line).into_owned();
        let line = RawValue::from_string(line).map_err(io::Error::other)?;
        let mut kept = self.kept();
        kept.lines.push_back(line.into());
        self.count.send_replace(kept.before + kept.lines.len());
        Ok(())
    }
}

/// A door that connections are handed to.
struct Guests(mpsc::Receiver<BufReader<TcpStream>>);

impl axum::serve::Listener for Guests {
    type Io = BufReader<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.0.recv().await {
            Some(stream) => {
                let address = stream
                    .get_ref()
                    .peer_addr()
                    .unwrap_or_else(|_| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
                (stream, address)
            }
            // The session is gone, and this task with it.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, WIRE_PORT)))
    }
}

async fn listen(port: u16) -> Result<TcpListener, HostError> {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        .await
        .map_err(|source| HostError::Listen {
            place: format!("port {port}"),
            source,
        })
}

impl Host {
    /// Serves until the process ends. Links and puts come over `socket`; what is put lies in `depot`.
    ///
    /// # Errors
    /// If a socket cannot be had.
    pub async fn serve(socket: &Path, depot: PathBuf) -> Result<(), HostError> {
        let (wire, depot_door, shut) = (
            listen(WIRE_PORT).await?,
            listen(DEPOT_PORT).await?,
            listen(SHUT_PORT).await?,
        );
        let links = UnixListener::bind(socket).map_err(|source| HostError::Listen {
            place: socket.display().to_string(),
            source,
        })?;
        let host = Arc::new(Self {
            depot,
            sessions: Mutex::default(),
            put: watch::Sender::new(0),
        });
        let fetches = Router::new()
            .route("/{name}", get(fetch))
            .with_state(Arc::clone(&host));
        tokio::spawn(async move { axum::serve(depot_door, fetches).await });
        let refused = Router::new().fallback(|| async { "nobody shall come here" });
        tokio::spawn(async move { axum::serve(shut, refused).await });
        let owners = Arc::clone(&host);
        tokio::spawn(async move {
            while let Ok((stream, _)) = links.accept().await {
                let host = Arc::clone(&owners);
                // A link that breaks is dialled again by its owner.
                tokio::spawn(async move { drop(host.owner(stream).await) });
            }
        });
        loop {
            let Ok((stream, _)) = wire.accept().await else {
                continue;
            };
            let host = Arc::clone(&host);
            tokio::spawn(async move { drop(host.guest(stream).await) });
        }
    }

    fn session(&self, workspace: WorkspaceId) -> Option<Arc<Session>> {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&workspace)
            .cloned()
    }

    /// A workspace's connection: who it is stands in its first line.
    async fn guest(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        (&mut stream).take(GREETING).read_line(&mut line).await?;
        let workspace: WorkspaceId = line.trim_end().parse().map_err(io::Error::other)?;
        let session = self
            .session(workspace)
            .ok_or_else(|| io::Error::other("no such workspace"))?;
        session.guests.send(stream).await.map_err(io::Error::other)
    }

    async fn owner(&self, stream: UnixStream) -> io::Result<()> {
        let (read, write) = tokio::io::split(stream);
        let mut read = BufReader::new(read);
        let mut line = String::new();
        read.read_line(&mut line).await?;
        match serde_json::from_str(&line)? {
            Opening::Link {
                workspace,
                book,
                rule,
                lines,
            } => {
                let session = self.open(workspace, *book, rule)?;
                session.speak(read, write, lines).await
            }
            Opening::Put { name, bytes } => self.take(&name, bytes, read, write).await,
        }
    }

    /// The workspace's session: a new one, or the one that an earlier link opened.
    fn open(
        &self,
        workspace: WorkspaceId,
        book: NonceBook,
        rule: TurnRule,
    ) -> io::Result<Arc<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(&workspace) {
            return Ok(Arc::clone(session));
        }
        let lines = Arc::new(Lines {
            began: Instant::now(),
            kept: Mutex::default(),
            count: watch::Sender::new(0),
        });
        // Values of the owner's are masked by the owner; its secrets do not come here.
        let wire = WireLog::new(Arc::clone(&lines) as Arc<dyn Sink>, Masker::new([]));
        let mut gateway = Gateway::new(book, rule, wire);
        let (guests, arriving) = mpsc::channel(64);
        gateway.serve(Guests(arriving));
        let session = Arc::new(Session {
            gateway: Mutex::new(gateway),
            lines,
            guests,
            done: Mutex::default(),
        });
        sessions.insert(workspace, Arc::clone(&session));
        Ok(session)
    }

    /// Keeps what was put, whole or not at all.
    async fn take(
        &self,
        name: &str,
        bytes: u64,
        mut read: BufReader<ReadHalf<UnixStream>>,
        mut write: WriteHalf<UnixStream>,
    ) -> io::Result<()> {
        let file = self.file(name)?;
        let part = file.with_extension(format!("{}.part", self.depot_count()));
        let mut out = tokio::fs::File::create(&part).await?;
        let taken = copy(&mut (&mut read).take(bytes), &mut out).await?;
        out.flush().await?;
        if taken != bytes {
            tokio::fs::remove_file(&part).await?;
            return Err(io::Error::other("it broke off"));
        }
        tokio::fs::rename(&part, &file).await?;
        self.put.send_modify(|count| *count += 1);
        write.write_all(b"kept\n").await?;
        write.shutdown().await
    }

    fn depot_count(&self) -> u64 {
        *self.put.borrow()
    }

    fn file(&self, name: &str) -> io::Result<PathBuf> {
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if plain {
            Ok(self.depot.join(name))
        } else {
            Err(io::Error::other(format!("`{name}` is no name")))
        }
    }
}

async fn fetch(State(host): State<Arc<Host>>, UrlPath(name): UrlPath<String>) -> Response {
    let Ok(file) = host.file(&name) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut put = host.put.subscribe();
    let there = async {
        loop {
            match tokio::fs::File::open(&file).await {
                Ok(file) => return Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
            if put.changed().await.is_err() {
                return None;
            }
        }
    };
    match tokio::time::timeout(PATIENCE, there).await {
        Ok(Some(file)) => {
            Body::from_stream(ReaderStream::with_capacity(file, 256 * 1024)).into_response()
        }
        Ok(None) | Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Session {
    /// Takes orders and tells what happened, from line `next` on.
    async fn speak(
        &self,
        mut read: BufReader<ReadHalf<UnixStream>>,
        mut write: WriteHalf<UnixStream>,
        mut next: usize,
    ) -> io::Result<()> {
        let mut count = self.lines.count.subscribe();
        let (done, mut finished) = mpsc::channel(16);
        let orders = async {
            let mut line = String::new();
            while read.read_line(&mut line).await? > 0 {
                let order: Numbered = serde_json::from_str(&line)?;
                let number = order.number;
                self.carry_out(order);
                if done.send(number).await.is_err() {
                    break;
                }
                line.clear();
            }
            Ok::<_, io::Error>(())
        };
        let reports = async {
            loop {
                let answered = tokio::select! {
                    biased;
                    number = finished.recv() => Some(number.ok_or(io::ErrorKind::BrokenPipe)?),
                    changed = count.changed() => {
                        changed.map_err(io::Error::other)?;
                        None
                    }
                };
                // What is there when an order is done goes before its answer.
                let fresh = self.lines.kept().from(next);
                for line in fresh {
                    tell(
                        &mut write,
                        &Report::Line {
                            number: next,
                            line: &line,
                        },
                    )
                    .await?;
                    next += 1;
                }
                if let Some(number) = answered {
                    let us = self.lines.us();
                    tell(&mut write, &Report::Done { number, us }).await?;
                }
            }
        };
        tokio::select! {
            ended = orders => ended,
            broken = reports => broken,
        }
    }

    /// Carries out an order, once.
    fn carry_out(
        &self,
        Numbered {
            number,
            have,
            order,
        }: Numbered,
    ) {
        self.lines.kept().forget(have);
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if number <= *done {
            return;
        }
        *done = number;
        let gateway = self.gateway.lock().unwrap_or_else(PoisonError::into_inner);
        match order {
            Order::Epoch(epoch) => gateway.here_epoch(epoch),
            Order::Break(faults) => gateway.here_break(faults),
            Order::Snapshots(fault) => gateway.control().set_fault(fault),
            Order::Flush => {}
        }
    }
}

async fn tell(write: &mut WriteHalf<UnixStream>, report: &Report<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    write.write_all(&line).await
}
