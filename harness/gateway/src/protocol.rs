//! The seam between a wire protocol and the script: what was asked, and what shall be answered.

use axum::response::Response;
use bytes::Bytes;
use reprise_model::{Message, NonceBook, Protocol};
use thiserror::Error;

use crate::openai_chat;

/// An agent's request, as far as the script and the checks need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The conversation, oldest first.
    pub conversation: Vec<Message>,
    /// How many tools it offers.
    pub tools: usize,
    /// A tool that runs a command line, if it offers one.
    pub shell: Option<ShellTool>,
    /// The model asked for.
    pub model: String,
    /// Whether the reply shall be streamed.
    pub stream: bool,
    /// Whether a streamed reply shall end with its usage.
    pub include_usage: bool,
}

/// A tool that takes a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTool {
    /// Its name.
    pub name: String,
    /// The argument that takes the command.
    pub argument: String,
}

/// What the model says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Words.
    Text(String),
    /// A call of the shell tool.
    Run {
        /// The tool.
        tool: ShellTool,
        /// The command.
        command: String,
    },
}

/// A request that is not of its protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// A request's path, if it belongs to a model API.
pub(crate) fn of(method: &str, path: &str) -> Option<Call> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    match (method, path) {
        ("POST", "/v1/chat/completions" | "/chat/completions") => {
            Some(Call::Turn(Protocol::OpenaiChat))
        }
        ("GET", "/v1/models" | "/models") => Some(Call::Models(Protocol::OpenaiChat)),
        _ => None,
    }
}

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A model's turn.
    Turn(Protocol),
    /// The list of models.
    Models(Protocol),
}

pub(crate) fn parse(protocol: Protocol, body: &[u8], book: &NonceBook) -> Result<Turn, Malformed> {
    match protocol {
        Protocol::OpenaiChat => openai_chat::parse(body, book),
    }
}

/// The reply's pieces, in order, and what kind of body they make.
pub(crate) struct Reply {
    pub(crate) content_type: &'static str,
    pub(crate) pieces: Vec<Bytes>,
}

pub(crate) fn reply(protocol: Protocol, turn: &Turn, answer: &Answer, seq: u64) -> Reply {
    match protocol {
        Protocol::OpenaiChat => openai_chat::reply(turn, answer, seq),
    }
}

pub(crate) fn refuse(protocol: Protocol, status: u16, message: &str) -> Response {
    match protocol {
        Protocol::OpenaiChat => openai_chat::refuse(status, message),
    }
}

pub(crate) fn models(protocol: Protocol) -> Response {
    match protocol {
        Protocol::OpenaiChat => openai_chat::models(),
    }
}
