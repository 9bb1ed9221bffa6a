//! The agent's own commands: run in the workspace, recorded, and held against whether the model's answer reached the agent.

use std::time::Duration;

use reprise_engine::Exec;
use reprise_model::{Mark, Observation, Outcome};

use super::answers::{answered, asked, failed};
use crate::record::Recorder;
use crate::scenario::Placeholders;
use crate::workspace::{Workspace, WorkspaceError};

/// Runs one of the agent's commands and records its end.
pub(super) async fn run(
    workspace: &Workspace,
    recorder: &Recorder,
    mut exec: Exec,
    limit: Duration,
) -> Result<(Option<i32>, String), WorkspaceError> {
    const TAIL: usize = 1000;
    let argv = exec.argv.clone();
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

/// Which of an agent's commands is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saying {
    /// The one that begins a session.
    First,
    /// The one that goes on with it.
    Next,
}

/// Something told to an agent by one of its own commands.
pub(super) struct Told {
    pub(super) command: Option<Vec<String>>,
    pub(super) cwd: Option<String>,
    pub(super) placeholders: Placeholders,
    pub(super) limit: Duration,
}

impl Told {
    /// The command in full.
    pub(super) fn exec(&self) -> Result<Exec, Outcome> {
        let command = self.command.as_deref();
        let argv = match command.map(|command| self.placeholders.expand_all(command)) {
            Some(Ok(argv)) => argv,
            Some(Err(error)) => {
                let reason = error.to_string();
                return Err(Outcome::Unknown { reason });
            }
            None => return Err(failed("the profile names no command for it")),
        };
        let mut exec = Exec::new(argv);
        exec.cwd = self.cwd.as_ref().map(Into::into);
        Ok(exec)
    }

    /// Runs the command.
    pub(super) async fn said(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
    ) -> Result<(Outcome, String), WorkspaceError> {
        let exec = match self.exec() {
            Ok(exec) => exec,
            Err(outcome) => return Ok((outcome, String::new())),
        };
        let (code, tail) = run(workspace, recorder, exec, self.limit).await?;
        let outcome = match code {
            Some(0) => Outcome::Ok,
            Some(code) => failed(format!("its command ended with {code}: {tail}")),
            None => failed(format!("its command did not end: {tail}")),
        };
        Ok((outcome, tail))
    }

    /// Runs the command, and looks whether the model answered.
    pub(super) async fn heard(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        wanted: Mark,
    ) -> Result<Outcome, WorkspaceError> {
        let (outcome, _) = self.said(workspace, recorder).await?;
        workspace.all_recorded().await?;
        Ok(match outcome {
            Outcome::Ok if !answered(workspace, &[wanted], Duration::ZERO).await => {
                failed(format!(
                    "its command ended well without its model's answer ({})",
                    asked(workspace)
                ))
            }
            outcome => outcome,
        })
    }
}
