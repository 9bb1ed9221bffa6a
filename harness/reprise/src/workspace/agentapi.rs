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
    /// It does not answer: it is not up, or has gone.
    #[error("AgentAPI does not answer on port {port}: {said}")]
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

#[derive(Deserialize)]
struct Reply {
    status: u16,
    body: String,
}

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
    ) -> Result<String, AgentApiError> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let reply: Reply = workspace
            .role(&["request", method, &url], body, false)
            .await
            .map_err(|error| match error {
                WorkspaceError::Role { said, .. } => AgentApiError::Silent {
                    port: self.port,
                    said,
                },
                other => AgentApiError::Workspace(other),
            })?;
        if (200..300).contains(&reply.status) {
            Ok(reply.body)
        } else {
            Err(AgentApiError::Refused {
                status: reply.status,
                body: reply.body.chars().take(400).collect(),
            })
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
            .request(workspace, "GET", "/status", Vec::new())
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
            .request(workspace, "GET", "/messages", Vec::new())
            .await?;
        Ok(serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// `POST /message`.
    ///
    /// # Errors
    /// If it refuses: it does so while its agent is at work.
    pub async fn send(self, workspace: &Workspace, text: &str) -> Result<(), AgentApiError> {
        let body = json!({"content": text, "type": "user"}).to_string();
        self.request(workspace, "POST", "/message", body.into_bytes())
            .await
            .map(drop)
    }
}
