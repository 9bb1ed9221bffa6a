//! Says something to an agent behind AgentAPI, and looks for the model's answers on the wire.

use std::time::Duration;

use reprise_model::{Mark, Outcome};
use tokio::time::Instant;

use crate::workspace::{AgentApi, AgentApiError, Workspace, WorkspaceError};

/// How often AgentAPI is asked for its status.
pub(super) const POLL: Duration = Duration::from_millis(200);

pub(super) fn failed(reason: impl Into<String>) -> Outcome {
    Outcome::Failed {
        reason: reason.into(),
    }
}

/// Sends a message. AgentAPI refuses while its agent is at work, and may do so once more just after it called it stable.
pub(super) async fn send(
    api: AgentApi,
    workspace: &Workspace,
    message: &str,
    limit: Duration,
) -> Result<Result<(), String>, WorkspaceError> {
    let deadline = Instant::now() + limit;
    loop {
        match api.send(workspace, message).await {
            Ok(()) => return Ok(Ok(())),
            Err(AgentApiError::Workspace(error)) => return Err(error),
            // It may have reached the agent: once more could be twice.
            Err(error @ AgentApiError::Silent { .. }) => return Ok(Err(error.to_string())),
            Err(error) if Instant::now() >= deadline => return Ok(Err(error.to_string())),
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// Waits until the agent has taken a reply that holds one of `marks`.
pub(super) async fn answered(workspace: &Workspace, marks: &[Mark], limit: Duration) -> bool {
    let wire = workspace.gateway().wire();
    let holds = || {
        wire.any(|exchange| {
            exchange.answered()
                && exchange
                    .reply
                    .as_ref()
                    .is_some_and(|reply| reply.marks.iter().any(|mark| marks.contains(mark)))
        })
    };
    let mut changes = wire.changes();
    tokio::time::timeout(limit, changes.wait_for(|_| holds()))
        .await
        .is_ok()
}

/// What reached the gateway so far, for a message about what did not.
pub(super) fn asked(workspace: &Workspace) -> String {
    let exchanges = workspace.gateway().wire().exchanges();
    match exchanges.last() {
        None => "it asked its model nothing at all".to_owned(),
        Some(last) => format!(
            "it sent {} request(s), the last was {} {}",
            exchanges.len(),
            last.request.method,
            last.request.path
        ),
    }
}
