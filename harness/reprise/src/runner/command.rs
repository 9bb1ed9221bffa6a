//! The agent's own commands: run in the workspace, recorded, and held against whether the model's answer reached the agent.

use std::time::Duration;

use reprise_engine::Exec;
use reprise_model::{Mark, Observation, Outcome};

use super::Limits;
use super::drive::{answered, asked, failed};
use crate::record::Recorder;
use crate::scenario::Placeholders;
use crate::workspace::{Workspace, WorkspaceError};

/// Runs one of the agent's commands and records its end.
pub(super) async fn run(
    workspace: &Workspace,
    recorder: &Recorder,
    argv: Vec<String>,
    limit: Duration,
) -> Result<(Option<i32>, String), WorkspaceError> {
    const TAIL: usize = 1000;
    let mut exec = Exec::new(argv.clone());
    exec.timeout = limit;
    let (code, text) = match workspace.exec(exec).await {
        Ok(output) => (Some(output.code), output.text()),
        Err(WorkspaceError::Engine(reprise_engine::EngineError::ExecTimedOut { .. })) => {
            (None, format!("still running after {} s", limit.as_secs()))
        }
        Err(WorkspaceError::Engine(reprise_engine::EngineError::Exec { reason, .. })) => {
            (None, reason)
        }
        Err(error) => return Err(error),
    };
    let skip = text.chars().count().saturating_sub(TAIL);
    let tail: String = text.chars().skip(skip).collect();
    recorder.observe(Observation::Command {
        argv,
        code,
        tail: tail.clone(),
    })?;
    Ok((code, tail))
}

/// Tells the agent something by one of its own commands, and looks whether its model answered.
pub(super) async fn told(
    workspace: &Workspace,
    recorder: &Recorder,
    command: Option<&[String]>,
    placeholders: &Placeholders,
    message: String,
    wanted: Mark,
    limits: &Limits,
) -> Result<Outcome, WorkspaceError> {
    let placeholders = placeholders.clone().with("message", message);
    let argv = match command.map(|command| placeholders.expand_all(command)) {
        Some(Ok(argv)) => argv,
        Some(Err(error)) => {
            return Ok(Outcome::Unknown {
                reason: error.to_string(),
            });
        }
        None => return Ok(failed("the profile names no command for it")),
    };
    let (code, tail) = run(workspace, recorder, argv, limits.answer).await?;
    workspace.all_recorded().await?;
    match code {
        Some(0) if answered(workspace, wanted, Duration::ZERO).await => Ok(Outcome::Ok),
        Some(0) => Ok(failed(format!(
            "its command ended well without its model's answer ({})",
            asked(workspace)
        ))),
        Some(code) => Ok(failed(format!("its command ended with {code}: {tail}"))),
        None => Ok(failed(format!("its command did not end: {tail}"))),
    }
}
