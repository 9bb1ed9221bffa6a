//! The part of Coder's control plane that a workspace's scripts call: the log snapshot of a task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// The most a snapshot may hold, as in Coder: 64 KiB.
const LIMIT: usize = 64 * 1024;

/// What shall go wrong with the next log snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This status instead of 204.
    Status(u16),
    /// Its answer comes so much later.
    Slow(Duration),
    /// No answer comes.
    Hang,
}

/// A path with one slash at its start: `CODER_AGENT_URL` ends with one, and scripts put another behind it.
fn collapsed(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// The control plane's double.
#[derive(Debug, Clone, Default)]
pub struct ControlPlane {
    fault: Arc<Mutex<Option<Fault>>>,
}

impl ControlPlane {
    /// Makes log snapshots go wrong, or right again.
    pub fn set_fault(&self, fault: Option<Fault>) {
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
            Some(Fault::Status(code)) => {
                return StatusCode::from_u16(code)
                    .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
                    .into_response();
            }
            Some(Fault::Slow(delay)) => tokio::time::sleep(delay).await,
            Some(Fault::Hang) => std::future::pending().await,
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
