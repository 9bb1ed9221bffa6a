//! Turns that the model holds: a moment in the middle of the agent's work at which its workspace can be ended.

use reprise_gateway::HELD_COMMAND;
use reprise_model::{Class, HoldPoint, Outcome};
use tokio::time::Instant;

use super::Limits;
use super::answers::{POLL, asked, failed};
use crate::workspace::{Workspace, WorkspaceError};

/// A turn that is to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// In which start.
    pub(super) epoch: u32,
    /// 0 for the task, n for the n-th follow-up.
    pub(super) turn: u32,
    /// Where the model stops.
    pub(super) at: HoldPoint,
}

/// Waits until the agent's turn is held.
pub(super) async fn wait(
    workspace: &Workspace,
    held: &Held,
    limits: &Limits,
) -> Result<Outcome, WorkspaceError> {
    let deadline = Instant::now() + limits.answer;
    let wire = workspace.gateway().wire();
    let unanswered = || {
        wire.any(|exchange| {
            exchange.request.epoch == held.epoch
                && exchange.request.class == Class::Main
                && exchange.reply.is_none()
        })
    };
    loop {
        let there = match held.at {
            HoldPoint::Request | HoldPoint::Reply => {
                workspace.all_recorded().await?;
                unanswered()
            }
            HoldPoint::ToolCall => {
                let lines: Vec<String> = workspace.role(&["processes"], Vec::new(), false).await?;
                lines.iter().any(|line| line == HELD_COMMAND)
            }
        };
        if there {
            return Ok(Outcome::Ok);
        }
        if Instant::now() >= deadline {
            return Ok(failed(format!(
                "{} s later the model had not been asked so far that it could stop {} ({})",
                limits.answer.as_secs(),
                held.at,
                asked(workspace)
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}
