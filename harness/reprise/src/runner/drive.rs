//! How an agent is started, given its task and spoken to, at either layer.

use std::collections::BTreeMap;
use std::time::Duration;

use reprise_engine::Exec;
use reprise_model::{Mark, NonceBook, Outcome, Place, Subject};
use serde_json::Value;

use super::answers::{answered, asked, failed, send};
use super::command::{Saying, Told, run};
use super::hold::{self, Held};
use super::settings::{directory, environment, placeholders};
use super::words::{aside_text, follow_up_text, task_text};
use super::{Limits, settle};
use crate::agent::Installed;
use crate::module::{Rendered, Renderer, Transition};
use crate::record::Recorder;
use crate::scenario::{
    AgentProfile, Conditions, ExpandError, ModuleProfile, NativeCommands, Placeholders,
    RestartKind, TaskChannel,
};
use crate::workspace::{AgentApi, Begun, HOME, StartPlan, Starting, Workspace, WorkspaceError};

/// What a workspace is called, and its owner, until they are renamed.
pub(super) const WORKSPACE: &str = "workspace";
pub(super) const OWNER: &str = "reprise";

/// One agent at one layer.
pub(super) struct Driver {
    commands: Option<NativeCommands>,
    placeholders: Placeholders,
    env: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    /// Where the agent works, if not in its home.
    works_in: Option<String>,
    /// A place that must be made for it.
    place: Option<Place>,
    without_prompt: bool,
    /// The workspace's name and its owner's.
    name: &'static str,
    owner: &'static str,
    module: Option<OfModule>,
}

/// What is the module layer's.
struct OfModule {
    api: AgentApi,
    profile: ModuleProfile,
    renderer: Box<Renderer>,
    rendered: Option<Rendered>,
}

impl Driver {
    /// The agent alone.
    pub(super) fn native(
        profile: &AgentProfile,
        subject: Subject,
        conditions: &Conditions,
        workspace: &Workspace,
    ) -> Self {
        let mut env = environment(profile, subject);
        env.extend(conditions.env.clone());
        let full = |path: &String| path.replace("${home}", HOME);
        let works_in = conditions.directory.as_ref().map(full);
        Self {
            commands: profile.native.clone(),
            placeholders: placeholders(workspace, conditions).with("session", "reprise"),
            env,
            files: profile
                .native
                .as_ref()
                .map(|native| native.files.clone())
                .unwrap_or_default(),
            place: works_in.clone().map(|path| Place {
                path,
                link_to: conditions.link_to.as_ref().map(full),
            }),
            works_in,
            without_prompt: conditions.without_prompt,
            name: WORKSPACE,
            owner: OWNER,
            module: None,
        }
    }

    /// The agent as its module starts it.
    pub(super) fn module(
        profile: &AgentProfile,
        subject: Subject,
        conditions: &Conditions,
        module: &ModuleProfile,
        renderer: Renderer,
        workspace: &Workspace,
    ) -> Self {
        let alone = Self::native(profile, subject, conditions, workspace);
        let told_where = module
            .variables
            .values()
            .any(|value| value.as_str().is_some_and(|text| text == "${directory}"));
        Self {
            works_in: alone
                .works_in
                .or_else(|| told_where.then(|| directory(conditions))),
            // A module makes the directory it works in; that a link leads there is its user's doing.
            place: alone.place.filter(|place| place.link_to.is_some()),
            env: module.env.clone().into_iter().chain(alone.env).collect(),
            files: module.files.clone(),
            module: Some(OfModule {
                api: AgentApi { port: module.port },
                profile: module.clone(),
                renderer: Box::new(renderer),
                rendered: None,
            }),
            ..alone
        }
    }

    /// What somebody has written into the home before the start that follows a restart of this kind.
    pub(super) fn written(&self, kind: RestartKind) -> BTreeMap<String, String> {
        let Some(module) = &self.module else {
            return BTreeMap::new();
        };
        kind.overwritten()
            .and_then(|(file, content)| {
                Some((
                    module.profile.agentapi_file(file)?.to_owned(),
                    content.to_owned(),
                ))
            })
            .into_iter()
            .collect()
    }

    /// Gives the workspace and its owner other names.
    pub(super) fn rename(&mut self) {
        (self.name, self.owner) = ("renamed", "somebody-else");
        if let Some(module) = &mut self.module {
            module.renderer.rename(self.name, self.owner);
        }
    }

    pub(super) fn renders(&self) -> bool {
        self.module.is_some()
    }

    /// Renders the module for a transition; a module that does not render is no set-up, so nothing was seen of its agent.
    pub(super) async fn render(&mut self, transition: Transition) -> Outcome {
        let Some(module) = &mut self.module else {
            return Outcome::Ok;
        };
        match module.renderer.render(transition).await {
            Ok(result) => {
                module.rendered = Some(result);
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
        let mut env = self.placeholders.expand_values(&self.env)?;
        let mut plan = StartPlan {
            programs: installed.programs.clone(),
            commands: installed.commands.clone(),
            directories: installed.directories.clone(),
            files: self.placeholders.expand_values(&self.files)?,
            ..StartPlan::default()
        };
        plan.places.extend(self.place.clone());
        if let Some(module) = &self.module {
            plan.watch.extend(module.profile.state_file.clone());
            if let Some(rendered) = &module.rendered {
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
                ("CODER_WORKSPACE_NAME", self.name.to_owned()),
                ("CODER_WORKSPACE_OWNER_NAME", self.owner.to_owned()),
            ] {
                env.insert(name.to_owned(), value);
            }
            if let TaskChannel::Env(name) = &module.profile.task
                && !self.without_prompt
            {
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
        epoch: u32,
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
        let (None, Some(commands)) = (&self.module, &self.commands) else {
            return Ok(Outcome::Ok);
        };
        let (code, tail) = run(
            workspace,
            recorder,
            Exec::new(commands.version.clone()),
            Duration::from_secs(60),
        )
        .await?;
        Ok(match code {
            Some(0) => Outcome::Ok,
            // It did before: what the restart left it is too little for it.
            _ if epoch > 0 => failed(format!(
                "{} does not run any more: {tail}",
                commands.version.join(" ")
            )),
            _ => Outcome::Unknown {
                reason: format!("{} does not run here: {tail}", commands.version.join(" ")),
            },
        })
    }

    /// The task: natively it is given now, and a module gives it by itself.
    pub(super) async fn task(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        book: &NonceBook,
        limits: &Limits,
        epoch: u32,
    ) -> Result<Outcome, WorkspaceError> {
        let wanted = Mark::Answer { epoch, turn: 0 };
        if self.module.is_none() {
            let told = self.say(Saying::First, task_text(book), limits);
            return told.heard(workspace, recorder, wanted).await;
        }
        // A start that was cut off may have come so far as to have it answered.
        let wanted: Vec<Mark> = (0..=epoch)
            .map(|epoch| Mark::Answer { epoch, turn: 0 })
            .collect();
        Ok(match answered(workspace, &wanted, limits.answer).await {
            true => Outcome::Ok,
            false => failed(format!(
                "the module started its agent, and {} s later the task had not been answered ({})",
                limits.answer.as_secs(),
                asked(workspace)
            )),
        })
    }

    /// A follow-up.
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
        let Some(module) = &self.module else {
            let told = self.say(self.saying(turn), message, limits);
            return told.heard(workspace, recorder, wanted).await;
        };
        if let Err(reason) = send(module.api, workspace, &message, limits.answer).await? {
            return Ok(failed(reason));
        }
        Ok(match answered(workspace, &[wanted], limits.answer).await {
            true => Outcome::Ok,
            false => failed(format!(
                "AgentAPI took the follow-up, and {} s later it had not been answered ({})",
                limits.answer.as_secs(),
                asked(workspace)
            )),
        })
    }

    /// Where there was no task, the first message begins the session.
    fn saying(&self, turn: u32) -> Saying {
        if self.without_prompt && turn == 1 {
            Saying::First
        } else {
            Saying::Next
        }
    }

    /// Begins a turn that the model holds: the task's, or that of follow-up `turn`. Ends when it is held; natively the command
    /// that began it is still under way then.
    pub(super) async fn begin(
        &self,
        workspace: &Workspace,
        book: &NonceBook,
        limits: &Limits,
        held: Held,
    ) -> Result<(Outcome, Option<Begun>), WorkspaceError> {
        let waits = hold::wait(workspace, &held, limits);
        let (saying, message) = match held.turn {
            0 => (Saying::First, task_text(book)),
            turn => (self.saying(turn), follow_up_text(book, turn)),
        };
        let Some(module) = &self.module else {
            let mut exec = match self.say(saying, message, limits).exec() {
                Ok(exec) => exec,
                Err(outcome) => return Ok((outcome, None)),
            };
            // It ends with its workspace.
            exec.timeout = limits.cell;
            let mut begun = workspace.begin(exec)?;
            let outcome = tokio::select! {
                held = waits => held?,
                ended = begun.ended() => failed(format!(
                    "its command ended though the model holds its turn: {}",
                    ended?.text()
                )),
            };
            return Ok((outcome, Some(begun)));
        };
        if held.turn == 0 {
            return Ok((waits.await?, None));
        }
        let sent = async {
            match send(module.api, workspace, &message, limits.answer).await? {
                // Taken: now the model must be asked.
                Ok(()) => std::future::pending().await,
                Err(reason) => Ok::<_, WorkspaceError>(failed(reason)),
            }
        };
        let outcome = tokio::select! {
            held = waits => held?,
            sent = sent => sent?,
        };
        Ok((outcome, None))
    }

    /// A session of the user's own, by the agent's own command.
    pub(super) async fn other_session(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        book: &NonceBook,
        limits: &Limits,
    ) -> Result<Outcome, WorkspaceError> {
        let mut told = self.say(Saying::First, aside_text(book), limits);
        told.placeholders = told.placeholders.with("session", "other");
        told.said(workspace, recorder)
            .await
            .map(|(outcome, _)| outcome)
    }

    fn say(&self, saying: Saying, message: String, limits: &Limits) -> Told {
        let command = self.commands.as_ref().map(|commands| match saying {
            Saying::First => commands.cold.clone(),
            Saying::Next => commands.resumed.clone(),
        });
        Told {
            command,
            cwd: self.works_in.clone(),
            placeholders: self.placeholders.clone().with("message", message),
            limit: limits.answer,
        }
    }

    /// Waits until the agent is at rest. At the native layer no process of the agent's is left between its commands.
    pub(super) async fn settle(
        &self,
        workspace: &Workspace,
        recorder: &Recorder,
        limits: &Limits,
    ) -> Result<Outcome, WorkspaceError> {
        match &self.module {
            None => Ok(Outcome::Ok),
            Some(module) => settle::settle(module.api, workspace, recorder, limits).await,
        }
    }

    /// What AgentAPI's UI would show, if it is there.
    pub(super) async fn messages(&self, workspace: &Workspace) -> Option<Value> {
        let module = self.module.as_ref()?;
        module.api.messages(workspace).await.ok()
    }
}
