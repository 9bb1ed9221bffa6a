//! How an agent is started, given its task and spoken to, at either layer.

use std::collections::BTreeMap;
use std::time::Duration;

use reprise_model::{Mark, NonceBook, Outcome, Subject};
use serde_json::Value;
use tokio::time::Instant;

use super::command::{run, told};
use super::{Limits, settle};
use crate::agent::Installed;
use crate::module::{Rendered, Renderer, Transition};
use crate::record::Recorder;
use crate::scenario::{
    AgentProfile, ExpandError, ModuleProfile, NativeCommands, Placeholders, TaskChannel,
};
use crate::workspace::{
    AgentApi, AgentApiError, HOME, StartPlan, Starting, Workspace, WorkspaceError,
};

/// How often AgentAPI is asked for its status.
pub(super) const POLL: Duration = Duration::from_millis(200);

/// The task's text: it holds the prompt's nonce, asks for one tool call, and says nothing of any answer.
pub(super) fn task_text(book: &NonceBook) -> String {
    format!(
        "Run one shell command of your choice in this directory and report when it is done. The reference of this task is {}.",
        book.nonce(Mark::Prompt)
    )
}

fn follow_up_text(book: &NonceBook, turn: u32) -> String {
    format!(
        "Please go on. The reference of this message is {}.",
        book.nonce(Mark::FollowUp { turn })
    )
}

/// One agent at one layer.
pub(super) enum Driver {
    Native {
        commands: Option<NativeCommands>,
        placeholders: Placeholders,
        env: BTreeMap<String, String>,
        files: BTreeMap<String, String>,
    },
    Module {
        api: AgentApi,
        task: TaskChannel,
        renderer: Box<Renderer>,
        rendered: Option<Rendered>,
        placeholders: Placeholders,
        env: BTreeMap<String, String>,
        files: BTreeMap<String, String>,
    },
}

fn placeholders(workspace: &Workspace) -> Placeholders {
    Placeholders::default()
        .with("gateway", workspace.gateway_address().to_string())
        .with("home", HOME)
}

pub(super) fn failed(reason: impl Into<String>) -> Outcome {
    Outcome::Failed {
        reason: reason.into(),
    }
}

/// A module's variables, with the gateway's address in their strings where they ask for it.
pub(super) fn variables(module: &ModuleProfile, gateway: &str) -> BTreeMap<String, Value> {
    fn fill(value: &Value, gateway: &str) -> Value {
        match value {
            // Other dollars are Terraform's or the module's own.
            Value::String(text) => text
                .replace("${gateway}", gateway)
                .replace("${home}", HOME)
                .into(),
            Value::Array(values) => values.iter().map(|value| fill(value, gateway)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), fill(value, gateway)))
                .collect(),
            other => other.clone(),
        }
    }
    module
        .variables
        .iter()
        .map(|(name, value)| (name.clone(), fill(value, gateway)))
        .collect()
}

/// The agent's environment. A stand-in is told where its model is in words of its own, beside those of the agent it plays.
fn environment(profile: &AgentProfile, subject: Subject) -> BTreeMap<String, String> {
    let mut env = profile.env.clone();
    if subject == Subject::StandIn {
        env.insert(
            "STAND_IN_GATEWAY".to_owned(),
            "http://${gateway}".to_owned(),
        );
    }
    env
}

impl Driver {
    pub(super) fn native(profile: &AgentProfile, subject: Subject, workspace: &Workspace) -> Self {
        Self::Native {
            commands: profile.native.clone(),
            placeholders: placeholders(workspace).with("session", "reprise"),
            env: environment(profile, subject),
            files: profile
                .native
                .as_ref()
                .map(|native| native.files.clone())
                .unwrap_or_default(),
        }
    }

    pub(super) fn module(
        profile: &AgentProfile,
        subject: Subject,
        module: &ModuleProfile,
        renderer: Renderer,
        workspace: &Workspace,
    ) -> Self {
        Self::Module {
            api: AgentApi { port: module.port },
            task: module.task.clone(),
            renderer: Box::new(renderer),
            rendered: None,
            placeholders: placeholders(workspace),
            env: environment(profile, subject)
                .into_iter()
                .chain(module.env.clone())
                .collect(),
            files: module.files.clone(),
        }
    }

    pub(super) fn renders(&self) -> bool {
        matches!(self, Self::Module { .. })
    }

    /// Renders the module for a transition; a module that does not render is no set-up, so nothing was seen of its agent.
    pub(super) async fn render(&mut self, transition: Transition) -> Outcome {
        let Self::Module {
            renderer, rendered, ..
        } = self
        else {
            return Outcome::Ok;
        };
        match renderer.render(transition).await {
            Ok(result) => {
                *rendered = Some(result);
                Outcome::Ok
            }
            Err(error) => Outcome::Unknown {
                reason: error.to_string(),
            },
        }
    }

    /// What the next start needs.
    pub(super) fn start_plan(
        &self,
        workspace: &Workspace,
        book: &NonceBook,
        installed: &Installed,
    ) -> Result<StartPlan, ExpandError> {
        let (Self::Native {
            placeholders,
            env,
            files,
            ..
        }
        | Self::Module {
            placeholders,
            env,
            files,
            ..
        }) = self;
        let mut env = placeholders.expand_values(env)?;
        let mut plan = StartPlan {
            programs: installed.programs.clone(),
            commands: installed.commands.clone(),
            directories: installed.directories.clone(),
            files: placeholders.expand_values(files)?,
            ..StartPlan::default()
        };
        if let Self::Module { rendered, task, .. } = self {
            if let Some(rendered) = rendered {
                env.extend(rendered.env.clone());
                env.insert("CODER_AGENT_TOKEN".to_owned(), rendered.token.clone());
                plan.scripts.clone_from(&rendered.scripts);
                plan.directory.clone_from(&rendered.directory);
            }
            for (name, value) in [
                ("CODER", "true".to_owned()),
                (
                    "CODER_AGENT_URL",
                    format!("http://{}/", workspace.gateway_address()),
                ),
                ("CODER_WORKSPACE_AGENT_NAME", "main".to_owned()),
                ("CODER_WORKSPACE_NAME", "workspace".to_owned()),
                ("CODER_WORKSPACE_OWNER_NAME", "reprise".to_owned()),
            ] {
                env.insert(name.to_owned(), value);
            }
            if let TaskChannel::Env(name) = task {
                env.insert(name.clone(), task_text(book));
            }
        }
        plan.env = env;
        Ok(plan)
    }

    /// What became of a start. At the native layer the agent must at least say its version.
    pub(super) async fn started(
        &self,
        starting: Starting,
        workspace: &Workspace,
        recorder: &Recorder,
    ) -> Result<Outcome, WorkspaceError> {
        match starting {
            Starting::Ready => {}
            Starting::ScriptsFailed(failures) => {
                let told: Vec<String> = failures
                    .iter()
                    .map(|failure| {
                        format!(
                            "script `{}`: {}; it wrote last: {}",
                            failure.name,
                            failure.problem,
                            failure.tail.join(" / ")
                        )
                    })
                    .collect();
                return Ok(failed(told.join("; ")));
            }
            Starting::StillRunning { scripts, tail } => {
                return Ok(failed(format!(
                    "still running at the limit: {}; written last: {}",
                    scripts.join(", "),
                    tail.join(" / ")
                )));
            }
            Starting::Ended { tail } => {
                return Ok(Outcome::Unknown {
                    reason: format!("PID 1 ended; it said last: {}", tail.join(" / ")),
                });
            }
        }
        let Self::Native {
            commands: Some(commands),
            ..
        } = self
        else {
            return Ok(Outcome::Ok);
        };
        let (code, tail) = run(
            workspace,
            recorder,
            commands.version.clone(),
            Duration::from_secs(60),
        )
        .await?;
        Ok(match code {
            Some(0) => Outcome::Ok,
            _ => Outcome::Unknown {
                reason: format!("{} does not run here: {tail}", commands.version.join(" ")),
            },
        })
    }

    pub(super) async fn task(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        book: &NonceBook,
        limits: &Limits,
    ) -> Result<Outcome, WorkspaceError> {
        let wanted = Mark::Answer { epoch: 0, turn: 0 };
        match self {
            Self::Native {
                commands,
                placeholders,
                ..
            } => {
                let cold = commands.as_ref().map(|commands| commands.cold.as_slice());
                let message = task_text(book);
                told(
                    workspace,
                    recorder,
                    cold,
                    placeholders,
                    message,
                    wanted,
                    limits,
                )
                .await
            }
            Self::Module { .. } => Ok(match answered(workspace, wanted, limits.answer).await {
                true => Outcome::Ok,
                false => failed(format!(
                    "the module started its agent, and {} s later the task had not been answered ({})",
                    limits.answer.as_secs(),
                    asked(workspace)
                )),
            }),
        }
    }

    pub(super) async fn follow_up(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        book: &NonceBook,
        limits: &Limits,
        (epoch, turn): (u32, u32),
    ) -> Result<Outcome, WorkspaceError> {
        let wanted = Mark::Answer { epoch, turn };
        let message = follow_up_text(book, turn);
        match self {
            Self::Native {
                commands,
                placeholders,
                ..
            } => {
                let resumed = commands
                    .as_ref()
                    .map(|commands| commands.resumed.as_slice());
                told(
                    workspace,
                    recorder,
                    resumed,
                    placeholders,
                    message,
                    wanted,
                    limits,
                )
                .await
            }
            Self::Module { api, .. } => {
                if let Err(reason) = send(*api, workspace, &message, limits.answer).await? {
                    return Ok(failed(reason));
                }
                Ok(match answered(workspace, wanted, limits.answer).await {
                    true => Outcome::Ok,
                    false => failed(format!(
                        "AgentAPI took the follow-up, and {} s later it had not been answered ({})",
                        limits.answer.as_secs(),
                        asked(workspace)
                    )),
                })
            }
        }
    }

    /// Waits until the agent is at rest. At the native layer no process of the agent's is left between its commands.
    pub(super) async fn settle(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        limits: &Limits,
    ) -> Result<Outcome, WorkspaceError> {
        match self {
            Self::Native { .. } => Ok(Outcome::Ok),
            Self::Module { api, .. } => settle::settle(*api, workspace, recorder, limits).await,
        }
    }

    /// What AgentAPI's UI would show, if it is there.
    pub(super) async fn messages(&self, workspace: &Workspace) -> Option<serde_json::Value> {
        match self {
            Self::Native { .. } => None,
            Self::Module { api, .. } => api.messages(workspace).await.ok(),
        }
    }
}

/// Sends a message. AgentAPI refuses while its agent is at work, and may do so once more just after it called it stable.
async fn send(
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

/// Waits until the agent has taken the reply that holds `mark`.
pub(super) async fn answered(workspace: &Workspace, mark: Mark, limit: Duration) -> bool {
    let wire = workspace.gateway().wire();
    let holds = || {
        wire.any(|exchange| {
            exchange.answered()
                && exchange
                    .reply
                    .as_ref()
                    .is_some_and(|reply| reply.marks.contains(&mark))
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
