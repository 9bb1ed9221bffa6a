//! What crossed the wire between an agent and its model.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Mark, Stamp};

/// A model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `OpenAI` Chat Completions.
    OpenaiChat,
    /// `OpenAI` Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
    /// Gemini `generateContent` and `streamGenerateContent`.
    GeminiContent,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenaiChat => "OpenAI Chat",
            Self::OpenaiResponses => "OpenAI Responses",
            Self::AnthropicMessages => "Anthropic Messages",
            Self::GeminiContent => "Gemini",
        })
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The agent's own turn.
    Main,
    /// A title, a router, a summary: may hold the task's text and means nothing for the session.
    Side,
    /// A list of models, a health check.
    Catalogue,
    /// Coder's control plane: the log snapshot.
    Control,
    /// Not understood; answered with an error.
    Malformed,
}

/// How an agent's own turns are told from its side requests.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TurnRule {
    /// Turns offer the model tools (with Gemini's API they are streamed); titles, routers and summaries do not.
    #[default]
    Tools,
    /// Turns are streamed: the rule for an agent that offers no tools at all.
    Streamed,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The user, or the program speaking for the user.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        })
    }
}

/// One message of a request's conversation, as far as checks need it. The whole stands in the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The nonces its text, tool calls and results hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Length of its text in bytes.
    pub bytes: usize,
    /// The first characters of its text.
    pub excerpt: String,
}

impl Message {
    /// Whether the message is of `role` and holds `mark`.
    #[must_use]
    pub fn holds(&self, role: Role, mark: Mark) -> bool {
        self.role == role && self.marks.contains(&mark)
    }
}

/// A request as recorded, without its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number in this workspace's wire, from 1.
    pub seq: u64,
    /// When its body was complete.
    pub at: Stamp,
    /// Which start of the workspace it came from; 0 is the first.
    pub epoch: u32,
    /// `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The API, where the path belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// What it is for.
    pub class: Class,
    /// How many tools it offers the model.
    pub tools: usize,
    /// Its conversation, oldest first.
    pub conversation: Vec<Message>,
    /// Length of the body in bytes.
    pub bytes: u64,
    /// Why it was not understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Request {
    /// Messages of `role` that hold `mark`.
    #[must_use]
    pub fn count(&self, role: Role, mark: Mark) -> usize {
        self.conversation
            .iter()
            .filter(|message| message.holds(role, mark))
            .count()
    }

    /// The place of the first message of `role` that holds `mark`.
    #[must_use]
    pub fn place(&self, role: Role, mark: Mark) -> Option<usize> {
        self.conversation
            .iter()
            .position(|message| message.holds(role, mark))
    }

    /// The last message that is not the system's.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.conversation
            .iter()
            .rev()
            .find(|message| message.role != Role::System)
    }
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyEnd {
    /// The client took all of it.
    Complete,
    /// The client went away, or a fault cut it.
    Broken,
}

/// What the gateway answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The request's number.
    pub seq: u64,
    /// When the reply ended.
    pub at: Stamp,
    /// HTTP status.
    pub status: u16,
    /// How it ended.
    pub end: ReplyEnd,
    /// The nonces the reply held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// A request with its reply; no reply if it was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// What the agent sent.
    pub request: Request,
    /// What it got.
    pub reply: Option<Reply>,
}

impl Exchange {
    /// Whether the client took the whole of a good reply.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.reply
            .as_ref()
            .is_some_and(|reply| reply.end == ReplyEnd::Complete && reply.status == 200)
    }
}

/// One line of `wire.jsonl`. A request's line holds its body beside these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireLine {
    /// A request came.
    Request(Request),
    /// Its reply ended.
    Reply(Reply),
}
