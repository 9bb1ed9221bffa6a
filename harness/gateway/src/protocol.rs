//! The seam between a wire protocol and the script: what was asked, and what shall be answered.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use reprise_model::{Message, NonceBook, Protocol, Role, TurnRule};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;

use crate::{anthropic_messages, gemini_content, openai_chat, openai_responses};

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
    /// Whether the reply shall be JSON of a given schema: what titles and routers ask for.
    pub json: bool,
}

/// A tool that takes a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTool {
    /// Its name.
    pub name: String,
    /// The argument that takes the command.
    pub argument: String,
    /// Whether that argument takes a list: a program and its arguments.
    pub list: bool,
    /// Whether it also takes a word on what the command is for; some agents refuse a call without it.
    pub described: bool,
}

impl ShellTool {
    /// What makes a tool one that runs a command line: its name says so, and a property of its schema takes it.
    const WORDS: [&str; 5] = ["shell", "bash", "exec", "terminal", "command"];

    fn may_be_in(text: &str) -> bool {
        let text = text.to_lowercase();
        Self::WORDS.iter().any(|word| text.contains(word))
    }

    /// The first of these tools that runs a command line; `parts` finds a tool's name and schema. Only those are read whose
    /// text speaks of a shell: tools are the greater part of an agent's request.
    pub(crate) fn among(
        tools: &[&RawValue],
        parts: impl Fn(&Value) -> Option<(&str, &Value)>,
    ) -> Option<Self> {
        tools
            .iter()
            .filter(|tool| Self::may_be_in(tool.get()))
            .find_map(|tool| {
                let tool: Value = serde_json::from_str(tool.get()).ok()?;
                let (name, schema) = parts(&tool)?;
                Self::of(name, schema)
            })
    }

    /// The shell tool of that name and JSON schema, if it is one.
    fn of(name: &str, schema: &Value) -> Option<Self> {
        if !Self::may_be_in(name) {
            return None;
        }
        let properties = schema["properties"].as_object()?;
        let argument = ["command", "cmd", "script"]
            .into_iter()
            .find(|argument| properties.contains_key(*argument))?;
        Some(Self {
            name: name.to_owned(),
            argument: argument.to_owned(),
            list: properties[argument]["type"] == "array",
            described: properties.contains_key("description"),
        })
    }

    /// The arguments of a call.
    pub(crate) fn call(&self, command: &str) -> Value {
        let command = if self.list {
            json!(["bash", "-lc", command])
        } else {
            json!(command)
        };
        let mut arguments = json!({ &self.argument: command });
        if self.described {
            arguments["description"] = json!("Runs the task's command");
        }
        arguments
    }
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

/// How much of a message's text is handed on to be masked and shortened.
const EXCERPT: usize = 1024;

/// A message with the marks that its text, calls and results hold.
pub(crate) fn message(role: Role, text: &str, book: &NonceBook) -> Message {
    Message {
        role,
        marks: book.find(text),
        bytes: text.len(),
        excerpt: text.chars().take(EXCERPT).collect(),
    }
}

/// Messages from pieces, of which those that one role says in a row are one message: Anthropic's and Gemini's APIs send
/// words and tools' results in the same message of the user's.
pub(crate) fn messages(
    pieces: impl IntoIterator<Item = (Role, String)>,
    book: &NonceBook,
) -> Vec<Message> {
    let mut parts: Vec<(Role, String)> = Vec::new();
    for (role, text) in pieces {
        match parts.last_mut() {
            Some((last, words)) if *last == role => {
                words.push('\n');
                words.push_str(&text);
            }
            _ => parts.push((role, text)),
        }
    }
    parts
        .iter()
        .map(|(role, text)| message(*role, text, book))
        .collect()
}

/// What a request asks for, if its path belongs to a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A model's turn.
    Turn(Protocol),
    /// The list of models.
    Models(Protocol),
    /// How many tokens a conversation has.
    Tokens(Protocol),
}

/// Reads a request's line. Anthropic's and `OpenAI`'s lists of models share a path: Anthropic's clients send their
/// version in a header.
pub(crate) fn of(method: &str, path: &str, anthropic: bool) -> Option<Call> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    match (method, path) {
        ("POST", "/v1/chat/completions" | "/chat/completions") => {
            Some(Call::Turn(Protocol::OpenaiChat))
        }
        ("POST", "/v1/responses" | "/responses") => Some(Call::Turn(Protocol::OpenaiResponses)),
        ("POST", "/v1/messages") => Some(Call::Turn(Protocol::AnthropicMessages)),
        ("POST", "/v1/messages/count_tokens") => Some(Call::Tokens(Protocol::AnthropicMessages)),
        ("GET", "/v1/models" | "/models") if anthropic => {
            Some(Call::Models(Protocol::AnthropicMessages))
        }
        ("GET", "/v1/models" | "/models") => Some(Call::Models(Protocol::OpenaiChat)),
        ("GET", "/v1beta/models") => Some(Call::Models(Protocol::GeminiContent)),
        ("POST", path) => {
            let (_, action) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
            match action {
                "generateContent" | "streamGenerateContent" => {
                    Some(Call::Turn(Protocol::GeminiContent))
                }
                "countTokens" => Some(Call::Tokens(Protocol::GeminiContent)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Reads a turn. Gemini's says in its path what the others say in their bodies.
pub(crate) fn parse(
    protocol: Protocol,
    path: &str,
    body: &[u8],
    book: &NonceBook,
) -> Result<Turn, Malformed> {
    match protocol {
        Protocol::OpenaiChat => openai_chat::parse(body, book),
        Protocol::OpenaiResponses => openai_responses::parse(body, book),
        Protocol::AnthropicMessages => anthropic_messages::parse(body, book),
        Protocol::GeminiContent => gemini_content::parse(path, body, book),
    }
}

/// Whether a request is the agent's own turn, and no title, router or summary. Which requests are, each API's clients
/// show: they offer tools in their turns and in nothing else, and Gemini's stream them.
pub(crate) fn is_main(protocol: Protocol, turn: &Turn, rule: TurnRule) -> bool {
    match (rule, protocol) {
        (TurnRule::Streamed, _) | (TurnRule::Tools, Protocol::GeminiContent) => turn.stream,
        (TurnRule::Tools, _) => turn.tools > 0,
    }
}

/// The reply's pieces, in order, and what kind of body they make.
pub(crate) struct Reply {
    pub(crate) content_type: &'static str,
    pub(crate) pieces: Vec<Bytes>,
}

impl Reply {
    pub(crate) fn json(body: &Value) -> Self {
        Self {
            content_type: "application/json",
            pieces: vec![Bytes::from(body.to_string())],
        }
    }

    pub(crate) fn events(pieces: Vec<Bytes>) -> Self {
        Self {
            content_type: "text/event-stream",
            pieces,
        }
    }
}

/// A text in two pieces, so that a client has to put a word together again.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    let middle = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(text.len(), |(at, _)| at);
    let (first, second) = text.split_at(middle);
    [first, second]
}

/// A server-sent event with a name (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), as Anthropic's and
/// the Responses API name theirs by the `type` in its data.
pub(crate) fn named_event(data: &Value) -> Bytes {
    let name = data["type"].as_str().unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

pub(crate) fn reply(
    protocol: Protocol,
    path: &str,
    turn: &Turn,
    answer: &Answer,
    seq: u64,
) -> Reply {
    match protocol {
        Protocol::OpenaiChat => openai_chat::reply(turn, answer, seq),
        Protocol::OpenaiResponses => openai_responses::reply(turn, answer, seq),
        Protocol::AnthropicMessages => anthropic_messages::reply(turn, answer, seq),
        Protocol::GeminiContent => gemini_content::reply(path, turn, answer, seq),
    }
}

pub(crate) fn refuse(protocol: Protocol, status: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => openai_chat::error(status, message),
        Protocol::AnthropicMessages => anthropic_messages::error(status, message),
        Protocol::GeminiContent => gemini_content::error(status, message),
    };
    (status, Json(body)).into_response()
}

pub(crate) fn models(protocol: Protocol) -> Response {
    Json(match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => openai_chat::models(),
        Protocol::AnthropicMessages => anthropic_messages::models(),
        Protocol::GeminiContent => gemini_content::models(),
    })
    .into_response()
}

/// A count of tokens: a quarter of the body's bytes, which is near enough for a client that only asks whether it all fits.
pub(crate) fn tokens(protocol: Protocol, body: &[u8]) -> Response {
    let count = body.len() / 4;
    Json(match protocol {
        Protocol::GeminiContent => json!({ "totalTokens": count }),
        _ => json!({ "input_tokens": count }),
    })
    .into_response()
}
