//! Follows what PID 1 says: records it, and lets the runner wait for the end of the start scripts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reprise_model::{AgentEvent, Moment, Observation, ScriptId, ScriptPhase};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::WorkspaceError;
use crate::record::{RecordError, Recorder};

/// How many of a script's last lines are quoted when it fails.
const TAIL: usize = 12;

/// A script that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFailure {
    /// Its name.
    pub name: String,
    /// What went wrong.
    pub problem: String,
    /// The end of what it wrote.
    pub tail: Vec<String>,
}

/// How a start went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Starting {
    /// Every start script ended well, or has begun if no more was asked for.
    Ready,
    /// Some failed.
    ScriptsFailed(Vec<ScriptFailure>),
    /// Some were still running at the limit.
    StillRunning {
        /// Their names.
        scripts: Vec<String>,
        /// The end of what they wrote.
        tail: Vec<String>,
    },
    /// PID 1 ended before.
    Ended {
        /// What it said last.
        tail: Vec<String>,
    },
}

#[derive(Debug, Default, Clone)]
struct State {
    finished: bool,
    ended: bool,
    running: HashMap<ScriptId, String>,
    failed: Vec<ScriptFailure>,
    tails: HashMap<ScriptId, Vec<String>>,
    noise: Vec<String>,
    trouble: Option<String>,
}

/// What PID 1 said so far.
#[derive(Debug)]
pub(super) struct Events {
    state: watch::Receiver<State>,
    task: JoinHandle<Result<(), RecordError>>,
}

impl Events {
    pub(super) fn follow(
        mut lines: mpsc::Receiver<String>,
        epoch: u32,
        recorder: Arc<Recorder>,
    ) -> Self {
        let (sender, state) = watch::channel(State::default());
        let task = tokio::spawn(async move {
            let mut result = Ok(());
            while let Some(line) = lines.recv().await {
                let taken = take(&line, epoch, &recorder, &sender);
                if result.is_ok() {
                    result = taken;
                }
            }
            sender.send_modify(|state| {
                state.ended = true;
                state.trouble = result.as_ref().err().map(ToString::to_string);
            });
            result
        });
        Self { state, task }
    }

    /// Waits for the end of the start scripts, or only until one has begun.
    pub(super) async fn start_finished(&mut self, only_begun: bool, limit: Duration) -> Starting {
        let enough = |state: &State| only_begun && !state.running.is_empty();
        let waited = tokio::time::timeout(
            limit,
            self.state
                .wait_for(|state| state.finished || state.ended || enough(state)),
        )
        .await
        .is_ok();
        let state = self.state.borrow().clone();
        if enough(&state) {
            return Starting::Ready;
        }
        if !waited {
            let mut scripts: Vec<String> = state.running.values().cloned().collect();
            scripts.sort();
            let tail = state
                .running
                .keys()
                .flat_map(|id| state.tails.get(id).into_iter().flatten().cloned())
                .collect();
            return Starting::StillRunning { scripts, tail };
        }
        if !state.failed.is_empty() {
            Starting::ScriptsFailed(state.failed)
        } else if state.finished {
            Starting::Ready
        } else {
            Starting::Ended { tail: state.noise }
        }
    }

    /// Waits until PID 1 has ended and its last line is recorded.
    pub(super) async fn ended(&mut self) -> Result<(), WorkspaceError> {
        match tokio::time::timeout(Duration::from_secs(10), &mut self.task).await {
            Ok(Ok(result)) => Ok(result?),
            // The instance is gone; what it could not say in time was not said.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn take(
    line: &str,
    epoch: u32,
    recorder: &Recorder,
    state: &watch::Sender<State>,
) -> Result<(), RecordError> {
    let Ok(event) = serde_json::from_str::<AgentEvent>(line) else {
        state.send_modify(|state| push(&mut state.noise, line));
        return recorder.log(&format!("{epoch}-pid1.log"), line);
    };
    match event {
        AgentEvent::HomeFound { snapshot } => recorder.snapshot(Moment::Found(epoch), *snapshot),
        AgentEvent::HomeLeft { snapshot } => recorder.snapshot(Moment::Left(epoch + 1), *snapshot),
        AgentEvent::ScriptLog { id, line, .. } => {
            let mut name = String::from("script");
            state.send_modify(|state| {
                push(state.tails.entry(id).or_default(), &line);
                if let Some(running) = state.running.get(&id) {
                    name.clone_from(running);
                }
            });
            recorder.log(&format!("{epoch}-{}.log", file_name(&name)), &line)
        }
        event => {
            // Recorded first: whoever is woken may act on it.
            recorder.observe(Observation::Agent {
                epoch,
                event: event.clone(),
            })?;
            state.send_modify(|state| note(state, event));
            Ok(())
        }
    }
}

fn note(state: &mut State, event: AgentEvent) {
    match event {
        AgentEvent::ScriptStarted { id, name, .. } => {
            state.running.insert(id, name);
        }
        AgentEvent::ScriptEnded {
            id,
            name,
            phase,
            code,
            problem,
            ..
        } => {
            state.running.remove(&id);
            let problem = match (code, problem) {
                (Some(0), None) => return,
                (Some(0) | None, Some(problem)) => problem,
                (Some(code), Some(problem)) => format!("exit code {code}; {problem}"),
                (Some(code), None) => format!("exit code {code}"),
                (None, None) => "it did not end".to_owned(),
            };
            if phase == ScriptPhase::Start {
                state.failed.push(ScriptFailure {
                    name,
                    problem,
                    tail: state.tails.get(&id).cloned().unwrap_or_default(),
                });
            }
        }
        AgentEvent::StartFinished { .. } => state.finished = true,
        _ => {}
    }
}

fn push(tail: &mut Vec<String>, line: &str) {
    if tail.len() == TAIL {
        tail.remove(0);
    }
    tail.push(line.to_owned());
}

/// A script's name as a file's.
fn file_name(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect()
}
