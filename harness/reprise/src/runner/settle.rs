//! When an agent behind AgentAPI is at rest.

use reprise_model::{Observation, Outcome};
use tokio::time::Instant;

use super::Limits;
use super::answers::{POLL, failed};
use crate::record::Recorder;
use crate::workspace::{AgentApi, AgentApiError, Status, Workspace, WorkspaceError};

/// How much of the time may go into asking: where an exec is dear, it is asked less often, or the asking itself would keep
/// the workspace from its rest.
const REST: u32 = 10;

/// Waits until the agent is at rest: it shows something, AgentAPI calls it stable, and for a while neither that nor the wire
/// changes.
pub(super) async fn settle(
    api: AgentApi,
    workspace: &Workspace,
    recorder: &Recorder,
    limits: &Limits,
) -> Result<Outcome, WorkspaceError> {
    let wire = workspace.gateway().wire().changes();
    let deadline = Instant::now() + limits.settle;
    let mut quiet_since = Instant::now();
    let mut last: Option<Status> = None;
    let mut lines = *wire.borrow();
    let mut silent = String::new();
    let mut shown = false;
    loop {
        let began = Instant::now();
        let status = api.status(workspace).await;
        let pause = POLL.max(began.elapsed() * REST);
        match status {
            Ok(status) => {
                if last != Some(status) {
                    last = Some(status);
                    quiet_since = Instant::now();
                    recorder.observe(Observation::AgentApiStatus {
                        status: status.as_str().to_owned(),
                    })?;
                }
            }
            Err(AgentApiError::Workspace(error)) => return Err(error),
            Err(error) => {
                silent = error.to_string();
                last = None;
                quiet_since = Instant::now();
            }
        }
        let now = *wire.borrow();
        if now != lines {
            lines = now;
            quiet_since = Instant::now();
        }
        if last == Some(Status::Stable) && quiet_since.elapsed() >= limits.quiet {
            if shown {
                return Ok(Outcome::Ok);
            }
            // What it shows first is where its quiet begins.
            quiet_since = Instant::now();
        }
        if !shown {
            match api.shows_something(workspace).await {
                Ok(something) => shown = something,
                Err(AgentApiError::Workspace(error)) => return Err(error),
                Err(error) => silent = error.to_string(),
            }
            if shown {
                quiet_since = Instant::now();
            }
        }
        if Instant::now() >= deadline {
            return Ok(failed(match last {
                Some(_) if !shown => format!(
                    "the agent's screen was still blank after {} s",
                    limits.settle.as_secs()
                ),
                Some(status) => format!(
                    "the agent was not at rest after {} s: AgentAPI says `{}`",
                    limits.settle.as_secs(),
                    status.as_str()
                ),
                None => format!(
                    "the agent was not at rest after {} s: {silent}",
                    limits.settle.as_secs()
                ),
            }));
        }
        tokio::time::sleep(pause).await;
    }
}
