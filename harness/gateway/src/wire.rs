//! What is kept of the wire: each request and reply as a line of `wire.jsonl`, and their heads in memory for whoever waits
//! for one.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use reprise_model::{Exchange, Reply, Request, Stamp, WireLine};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::Masker;

/// How much of a message's text is kept beside the body. Protocols hand over more, so that no secret is cut in two before
/// it is masked.
const EXCERPT: usize = 160;

/// Where lines go. Called from many tasks at once; a line must reach the disk whole.
pub trait Sink: Send + Sync {
    /// The present moment by the run's clocks.
    fn now(&self) -> Stamp;

    /// Keeps one line, its end not included.
    ///
    /// # Errors
    /// If it cannot be kept: a full disk.
    fn line(&self, line: &[u8]) -> io::Result<()>;
}

/// The wire of one workspace.
#[derive(Clone)]
pub struct WireLog {
    sink: Arc<dyn Sink>,
    masker: Arc<Masker>,
    state: Arc<Mutex<State>>,
    /// Counts the lines written.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    exchanges: Vec<Exchange>,
    trouble: Option<String>,
}

/// A request's line: as [`WireLine::Request`], with the body among its fields.
#[derive(Serialize)]
struct RequestLine<'a> {
    request: WithBody<'a>,
}

#[derive(Serialize)]
struct WithBody<'a> {
    #[serde(flatten)]
    head: &'a Request,
    body: &'a RawValue,
}

impl WireLog {
    /// A log that writes to `sink`.
    #[must_use]
    pub fn new(sink: Arc<dyn Sink>, masker: Masker) -> Self {
        Self {
            sink,
            masker: Arc::new(masker),
            state: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Every exchange so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.lock().exchanges.clone()
    }

    /// Whether some exchange so far is as `wanted` says.
    pub fn any(&self, wanted: impl FnMut(&Exchange) -> bool) -> bool {
        self.lock().exchanges.iter().any(wanted)
    }

    /// Why a line could not be kept, if one could not: the record is not whole then.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    /// Changes with every line.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The wire is not recorded any more.
    pub(crate) fn lost(&self, error: &io::Error) {
        self.lock()
            .trouble
            .get_or_insert_with(|| format!("the gateway's host was lost: {error}"));
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn now(&self) -> Stamp {
        self.sink.now()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing panics while it is held; a poisoned lock still holds whole exchanges.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a request and keeps it with its body.
    pub(crate) fn request(&self, mut request: Request, body: &[u8]) -> u64 {
        let body = self.masked(body);
        for message in &mut request.conversation {
            let masked = self.masker.mask(&message.excerpt);
            message.excerpt = masked.chars().take(EXCERPT).collect();
        }
        request.path = self.masker.mask(&request.path).into_owned();
        request.problem = request
            .problem
            .map(|problem| self.masker.mask(&problem).into_owned());
        let mut state = self.lock();
        let seq = state.exchanges.len() as u64 + 1;
        request.seq = seq;
        let line = RequestLine {
            request: WithBody {
                head: &request,
                body: &body,
            },
        };
        let text = serde_json::to_vec(&line).expect("a wire line is JSON");
        self.keep(&mut state, &text);
        state.exchanges.push(Exchange {
            request,
            reply: None,
        });
        drop(state);
        self.changes.send_modify(|count| *count += 1);
        seq
    }

    pub(crate) fn reply(&self, reply: Reply) {
        let mut state = self.lock();
        let line = WireLine::Reply(reply);
        let text = serde_json::to_vec(&line).expect("a wire line is JSON");
        self.keep(&mut state, &text);
        if let WireLine::Reply(reply) = line {
            let at = usize::try_from(reply.seq).unwrap_or(0).wrapping_sub(1);
            if let Some(exchange) = state.exchanges.get_mut(at) {
                exchange.reply = Some(reply);
            }
        }
        drop(state);
        self.changes.send_modify(|count| *count += 1);
    }

    fn keep(&self, state: &mut State, line: &[u8]) {
        if let Err(error) = self.sink.line(line) {
            state
                .trouble
                .get_or_insert_with(|| format!("the wire could not be recorded: {error}"));
        }
    }

    /// A body as it may be written: masked JSON as it came, anything else as a masked JSON string.
    fn masked(&self, body: &[u8]) -> Box<RawValue> {
        let text = String::from_utf8_lossy(body);
        let text = self.masker.mask(&text);
        // A line break between JSON's tokens would break the record's line.
        let as_json = (!text.contains(['\n', '\r']))
            .then(|| {
                serde_json::from_str::<&RawValue>(&text)
                    .ok()
                    .map(ToOwned::to_owned)
            })
            .flatten();
        as_json
            .unwrap_or_else(|| serde_json::value::to_raw_value(&*text).expect("a string is JSON"))
    }
}
