//! The part of Coder's control plane that a workspace's scripts call: the log snapshot of a task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use reprise_model::{Message, NonceBook, Role, SnapshotFault};
use serde::Deserialize;

use crate::protocol::message;

/// The most a snapshot may hold, as in Coder: 64 KiB.
const LIMIT: usize = 64 * 1024;

/// How late a slow answer is: later than any module's script waits for one.
const LATE: Duration = Duration::from_secs(12);

/// A path with one slash at its start: `CODER_AGENT_URL` ends with one, and scripts put another behind it.
fn collapsed(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// The control plane's double.
#[derive(Debug, Clone, Default)]
pub struct ControlPlane {
    fault: Arc<Mutex<Option<SnapshotFault>>>,
}

impl ControlPlane {
    /// Makes log snapshots go wrong, or right again.
    pub fn set_fault(&self, fault: Option<SnapshotFault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Whether a path is the control plane's.
    pub(crate) fn owns(path: &str) -> bool {
        collapsed(path).starts_with("/api/v2/")
    }

    /// Answers `POST /api/v2/workspaceagents/me/tasks/TASK/log-snapshot`; other paths are not known here.
    pub(crate) async fn answer(
        &self,
        method: &str,
        path: &str,
        authorized: bool,
        bytes: usize,
    ) -> Response {
        let path = path.split('?').next().unwrap_or_default();
        let path = collapsed(path);
        let is_snapshot = path.starts_with("/api/v2/workspaceagents/me/tasks/")
            && path.ends_with("/log-snapshot");
        if !is_snapshot || method != "POST" {
            return (StatusCode::NOT_FOUND, "no such endpoint").into_response();
        }
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(SnapshotFault::Down) => return broken_off(),
            Some(SnapshotFault::Slow) => tokio::time::sleep(LATE).await,
            Some(SnapshotFault::Unauthorized) => return StatusCode::UNAUTHORIZED.into_response(),
            Some(SnapshotFault::Unknown) => return StatusCode::NOT_FOUND.into_response(),
            Some(SnapshotFault::ServerError) => {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            None => {}
        }
        if !authorized {
            return (StatusCode::UNAUTHORIZED, "Coder-Session-Token is missing").into_response();
        }
        if bytes > LIMIT {
            return (StatusCode::PAYLOAD_TOO_LARGE, "more than 64 KiB").into_response();
        }
        StatusCode::NO_CONTENT.into_response()
    }
}

/// An answer that ends before its first byte.
fn broken_off() -> Response {
    let nothing = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    ([(header::CONTENT_LENGTH, "2")], Body::from_stream(nothing)).into_response()
}

/// A log snapshot as `AgentAPI` has it (<https://github.com/coder/agentapi/blob/main/openapi.json>, `GET /messages`).
#[derive(Deserialize)]
struct Snapshot {
    messages: Vec<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    role: String,
    content: String,
}

/// The messages of a log snapshot, as checks read them; none if it is no snapshot.
///
/// # Errors
/// With what is wrong with it.
pub fn shown(body: &[u8], book: &NonceBook) -> Result<Vec<Message>, serde_json::Error> {
    let snapshot: Snapshot = serde_json::from_slice(body)?;
    Ok(snapshot
        .messages
        .iter()
        .map(|shown| {
            let role = if shown.role == "user" {
                Role::User
            } else {
                Role::Assistant
            };
            let mut message = message(role, &shown.content, book);
            // A screen breaks lines where they end, and fills them up: a nonce may stand in two.
            for mark in book.find(&unbroken(&shown.content)) {
                if !message.marks.contains(&mark) {
                    message.marks.push(mark);
                }
            }
            message
        })
        .collect())
}

fn unbroken(screen: &str) -> String {
    screen.lines().map(str::trim_end).collect()
}

#[cfg(test)]
mod tests {
    use reprise_model::Mark;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nonce_is_found_across_the_end_of_a_line() {
        let book = NonceBook::draw();
        let nonce = book.nonce(Mark::Prompt);
        let (one, two) = nonce.split_at(15);
        let body = json!({"messages": [
            {"role": "agent", "content": format!("it is {one}  \n{two}   ")},
            {"role": "user", "content": nonce},
        ]});
        let messages = shown(body.to_string().as_bytes(), &book).expect("it is a snapshot");
        assert_eq!(messages[0].marks, [Mark::Prompt]);
        assert_eq!(messages[1].marks, [Mark::Prompt]);
        assert!(shown(b"{}", &book).is_err());
    }
}
