//! AgentAPI as the runner uses it (<https://github.com/coder/agentapi/blob/main/openapi.json>): asked from inside the workspace,
//! as Coder's own proxy would.

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::{Workspace, WorkspaceError};

/// What AgentAPI says of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is at work.
    Running,
    /// Its screen is still.
    Stable,
}

impl Status {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stable => "stable",
        }
    }
}

/// Why AgentAPI gave no answer.
#[derive(Debug, Error)]
pub enum AgentApiError {
    /// It is not up, or has gone.
    #[error("nobody listens on AgentAPI's port {port}: {said}")]
    NotThere {
        /// Its port.
        port: u16,
        /// What was seen.
        said: String,
    },
    /// It took the request and did not answer.
    #[error("AgentAPI on port {port} took the request, and gave {said}")]
    Silent {
        /// Its port.
        port: u16,
        /// What was seen.
        said: String,
    },
    /// It refused.
    #[error("AgentAPI refused with status {status}: {body}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        body: String,
    },
    /// The workspace itself failed.
    #[error(transparent)]
    Workspace(WorkspaceError),
}

/// What the workspace-agent's `request` prints.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Answered { status: u16, body: String },
    NotTaken(String),
    NotAnswered(String),
}

/// How long a question may take.
const QUESTION: u64 = 10;

/// How long a message may take: AgentAPI answers when its agent's screen has shown the message and has taken it, and gives
/// itself fifteen seconds for each.
const MESSAGE: u64 = 45;

/// AgentAPI in one workspace.
#[derive(Debug, Clone, Copy)]
pub struct AgentApi {
    /// Its port.
    pub port: u16,
}

impl AgentApi {
    async fn request(
        self,
        workspace: &Workspace,
        method: &str,
        path: &str,
        body: Vec<u8>,
        timeout: u64,
    ) -> Result<String, AgentApiError> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let reply: Reply = workspace
            .role(
                &["request", method, &url, "--timeout", &timeout.to_string()],
                body,
                false,
            )
            .await
            .map_err(AgentApiError::Workspace)?;
        let port = self.port;
        match reply {
            Reply::Answered { status, body } if (200..300).contains(&status) => Ok(body),
            Reply::Answered { status, body } => Err(AgentApiError::Refused {
                status,
                body: body.chars().take(400).collect(),
            }),
            Reply::NotTaken(said) => Err(AgentApiError::NotThere { port, said }),
            Reply::NotAnswered(said) => Err(AgentApiError::Silent { port, said }),
        }
    }

    /// `GET /status`.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn status(self, workspace: &Workspace) -> Result<Status, AgentApiError> {
        #[derive(Deserialize)]
        struct Said {
            status: Status,
        }
        let body = self
            .request(workspace, "GET", "/status", Vec::new(), QUESTION)
            .await?;
        serde_json::from_str::<Said>(&body)
            .map(|said| said.status)
            .map_err(|error| AgentApiError::Refused {
                status: 200,
                body: error.to_string(),
            })
    }

    /// `GET /messages`: what the UI shows.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn messages(self, workspace: &Workspace) -> Result<Value, AgentApiError> {
        let body = self
            .request(workspace, "GET", "/messages", Vec::new(), QUESTION)
            .await?;
        Ok(serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// Whether its agent's screen shows something. Until then AgentAPI calls the blank screen stable, and a message sent
    /// then can block it for good: its queue takes one message, and the task's prompt comes after it.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn shows_something(self, workspace: &Workspace) -> Result<bool, AgentApiError> {
        let messages = self.messages(workspace).await?;
        let last = messages["messages"].as_array().and_then(|all| all.last());
        Ok(last.is_some_and(|last| {
            let words = last["content"].as_str().unwrap_or_default();
            last["role"] == "agent" && !words.trim().is_empty()
        }))
    }

    /// `POST /message`.
    ///
    /// # Errors
    /// If it refuses: it does so while its agent is at work.
    pub async fn send(self, workspace: &Workspace, text: &str) -> Result<(), AgentApiError> {
        let body = json!({"content": text, "type": "user"}).to_string();
        self.request(workspace, "POST", "/message", body.into_bytes(), MESSAGE)
            .await
            .map(drop)
    }
}
