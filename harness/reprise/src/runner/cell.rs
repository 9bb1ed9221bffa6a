//! One cell: its record, its workspace, its walk, its verdicts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use reprise_engine::{Labels, Maker};
use reprise_gateway::{Gateway, Masker, WireLog};
use reprise_model::{
    Act, Cell, CellResult, Closing, Event, FORMAT, Header, Judgement, LogTail, NonceBook, Outcome,
    Subject, WorkspaceId,
};
use uuid::Uuid;

use super::drive::{Driver, OWNER, WORKSPACE};
use super::plan::{Chosen, Ready};
use super::walk::{Halt, Walker};
use super::words::task_text;
use super::{Run, Wanted, Watcher, settings};
use crate::module::{ModuleRegistry, Renderer, Workspace as RenderedFor};
use crate::record::{self, RecordError, Recorder};
use crate::scenario::{RestartKind, TaskChannel};
use crate::workspace::{Workspace, WorkspaceError};

/// How many lines of a log are quoted.
const TAIL: usize = 8;

/// Measures one cell. Whatever goes wrong ends in its result, and the workspace is deleted in any case.
pub(super) async fn measure(
    run: &Run,
    cell: Cell,
    wanted: &Wanted,
    ready: &Ready,
    watch: Watcher<'_>,
) -> CellResult {
    watch(Event::CellStarted { cell: cell.clone() });
    let began = Instant::now();
    let dir = run
        .directory
        .join(cell.engine.to_string())
        .join(cell.agent.as_str())
        .join(cell.layer.to_string())
        .join(cell.scenario.as_str())
        .join(wanted.part.as_deref().unwrap_or_default());
    let recorded = record_cell(run, &cell, wanted, ready, &dir, watch).await;
    let mut result = judge(&dir, &cell, wanted.subject);
    result.millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if let Err(error) = recorded {
        // The record is not whole: a pass from what is left of it would be worth nothing.
        result.judgement = result.judgement.max(Judgement::Inconclusive);
        result.trouble = Some(error.to_string());
    }
    if result.judgement > Judgement::Pass {
        result.logs = tails(&dir.join("logs"));
    }
    watch(Event::CellEnded {
        result: Box::new(result.clone()),
    });
    result
}

/// Reads a cell's record and judges it: the same as `reprise check` does later.
pub(crate) fn judge(dir: &Path, cell: &Cell, subject: Subject) -> CellResult {
    let mut result = CellResult {
        cell: cell.clone(),
        subject,
        module: None,
        module_variables: Default::default(),
        settings: Default::default(),
        judgement: Judgement::Inconclusive,
        verdicts: Vec::new(),
        versions: Default::default(),
        millis: 0,
        directory: dir.display().to_string(),
        logs: Vec::new(),
        trouble: None,
    };
    match record::read(dir) {
        Ok(history) => {
            result.verdicts = reprise_check::judge(&history);
            result.judgement = CellResult::worst(&result.verdicts);
            result.trouble = match &history.closing {
                Some(Closing::Finished) => None,
                Some(Closing::Stopped { reason } | Closing::Cancelled { reason }) => {
                    Some(reason.clone())
                }
                None => Some("the record was cut off".to_owned()),
            };
            result.module = history.header.module;
            result.module_variables = history.header.module_variables;
            result.settings = history.header.settings;
            result.versions = history.header.versions;
        }
        Err(error) => result.trouble = Some(error.to_string()),
    }
    result
}

fn tails(dir: &Path) -> Vec<LogTail> {
    let mut tails: Vec<LogTail> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let text = fs::read(entry.path()).ok()?;
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            Some(LogTail {
                name: entry.file_name().into_string().ok()?,
                lines: lines[lines.len().saturating_sub(TAIL)..]
                    .iter()
                    .map(|line| (*line).to_owned())
                    .collect(),
            })
        })
        .collect();
    tails.sort_by(|one, other| one.name.cmp(&other.name));
    tails
}

/// Values in this process's environment that are credentials by their names.
fn credentials() -> Vec<String> {
    const ENDS: [&str; 5] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS"];
    std::env::vars()
        .filter(|(name, _)| ENDS.iter().any(|end| name.ends_with(end)))
        .map(|(_, value)| value)
        .collect()
}

async fn record_cell(
    run: &Run,
    cell: &Cell,
    wanted: &Wanted,
    ready: &Ready,
    dir: &Path,
    watch: Watcher<'_>,
) -> Result<(), RecordError> {
    let book = NonceBook::draw();
    let labels = Labels {
        maker: Maker::this(run.id),
        workspace: WorkspaceId::draw(),
    };
    let mut versions = ready.installed.versions.clone();
    if let Some(before) = &ready.before {
        for (name, version) in &before.versions {
            if versions.get(name) != Some(version) {
                versions.insert(format!("{name} at the first start"), version.clone());
            }
        }
    }
    let engine = run
        .engine
        .version()
        .await
        .unwrap_or_else(|error| error.to_string());
    versions.insert(cell.engine.to_string(), engine);
    let header = Header {
        format: FORMAT,
        reprise: env!("CARGO_PKG_VERSION").to_owned(),
        run: run.id,
        cell: cell.clone(),
        workspace: labels.workspace,
        subject: wanted.subject,
        module: ready.module.as_ref().map(|chosen| chosen.module.clone()),
        module_variables: ready
            .module
            .as_ref()
            .map(|chosen| chosen.variables.clone())
            .unwrap_or_default(),
        settings: wanted
            .scenario
            .with
            .settings
            .clone()
            .into_iter()
            .chain(run.modules.settings.clone())
            .collect(),
        versions,
        nonces: book,
        checks: wanted.scenario.checks.clone(),
        claim: wanted.profile.claim.clone(),
    };
    let credentials = credentials();
    let masker = Masker::new(credentials.iter().map(String::as_str));
    let recorder = Arc::new(Recorder::begin(dir.to_owned(), header, masker.clone())?);
    let wire = WireLog::new(
        Arc::clone(&recorder) as Arc<dyn reprise_gateway::Sink>,
        masker,
    );
    let gateway = Gateway::new(book, wanted.profile.turns, wire);

    let op = recorder.intend(Act::CreateWorkspace)?;
    let created = async {
        let workspace = Workspace::create(
            Arc::clone(&run.engine),
            labels.clone(),
            gateway,
            Arc::clone(&recorder),
            run.program.clone(),
            run.gateway_port,
            &|_| (),
        )
        .await?;
        if let Some(bytes) = wanted.disk() {
            workspace.give_disk(bytes).await?;
        }
        Ok::<_, WorkspaceError>(workspace)
    };
    let created = created.await;
    let workspace = match created {
        Ok(workspace) => {
            recorder.ended(op, Outcome::Ok)?;
            workspace
        }
        Err(error) => {
            let reason = error.to_string();
            recorder.ended(
                op,
                Outcome::Unknown {
                    reason: reason.clone(),
                },
            )?;
            // A half-made workspace goes, too.
            let _ = run.engine.delete(labels.workspace).await;
            return recorder.close(Closing::Stopped { reason });
        }
    };
    let parts = Parts {
        run,
        cell,
        wanted,
        ready,
        id: labels.workspace,
        book,
        recorder: Arc::clone(&recorder),
        terraform: recorder.dir().join("terraform"),
    };
    recorder.close(walk(parts, workspace, watch).await?)
}

/// What a cell is made of.
struct Parts<'a> {
    run: &'a Run,
    cell: &'a Cell,
    wanted: &'a Wanted,
    ready: &'a Ready,
    id: WorkspaceId,
    book: NonceBook,
    recorder: Arc<Recorder>,
    /// Where Terraform works; its state is no evidence, and holds the agent's token.
    terraform: PathBuf,
}

impl Parts<'_> {
    /// Who starts the agent in this workspace and speaks to it.
    async fn driver(&self, workspace: &Workspace) -> Result<Driver, String> {
        let Self { run, wanted, .. } = self;
        let conditions = &wanted.scenario.with;
        let Some(Chosen { source, module, .. }) = &self.ready.module else {
            return Ok(Driver::native(
                &wanted.profile,
                wanted.subject,
                conditions,
                workspace,
            ));
        };
        let (Some((terraform, provider)), Some(profile)) =
            (&self.ready.installed.terraform, &wanted.profile.module)
        else {
            return Err("Terraform was not obtained".to_owned());
        };
        let registry = ModuleRegistry::serve(source.clone(), module)
            .await
            .map_err(|error| format!("cannot serve modules: {error}"))?;
        let gateway = workspace.gateway_address().to_string();
        let prompt = if conditions.without_prompt {
            String::new()
        } else {
            task_text(&self.book)
        };
        let mut variables = settings::variables(profile, conditions, &gateway);
        variables.extend(run.modules.settings.clone());
        if let TaskChannel::Variable(name) = &profile.task
            && !prompt.is_empty()
        {
            variables.insert(name.clone(), prompt.clone().into());
        }
        let renderer = Renderer::new(
            terraform.clone(),
            provider,
            registry,
            self.terraform.clone(),
            module.clone(),
            &variables,
            RenderedFor {
                id: self.id,
                name: WORKSPACE.to_owned(),
                owner: OWNER.to_owned(),
                task: Uuid::new_v4(),
                prompt,
                url: format!("http://{gateway}/"),
            },
        )
        .map_err(|error| error.to_string())?;
        Ok(Driver::module(
            &wanted.profile,
            wanted.subject,
            conditions,
            profile,
            renderer,
            workspace,
        ))
    }
}

/// Walks the scenario in a workspace that was made, and removes the workspace.
async fn walk(
    parts: Parts<'_>,
    mut workspace: Workspace,
    watch: Watcher<'_>,
) -> Result<Closing, RecordError> {
    let driver = match parts.driver(&workspace).await {
        Ok(driver) => driver,
        Err(reason) => {
            let _ = workspace.delete().await;
            return Ok(Closing::Stopped { reason });
        }
    };
    let Parts {
        run,
        cell,
        wanted,
        ready,
        ..
    } = parts;
    let mut walker = Walker {
        cell,
        id: parts.id,
        recorder: parts.recorder,
        workspace,
        driver,
        installed: ready.installed.clone(),
        before: ready.before.clone(),
        limits: run.limits,
        book: parts.book,
        watch,
        epoch: 0,
        turn: 0,
        claimed_paths: wanted.profile.claim.paths.clone(),
        logs: wanted.profile.logs.clone(),
        in_place: wanted.scenario.restarts_by(RestartKind::KillContainer),
        same_name: wanted.scenario.restarts_by(RestartKind::Reattach),
        slow_stop: wanted.scenario.restarts_by(RestartKind::ShortGrace),
        sessions: wanted.profile.claim.sessions.clone(),
        looks_at_tmp: wanted.scenario.restarts_by(RestartKind::TmpTaken),
        held: None,
        under_way: None,
        without: wanted.scenario.with.without_programs.clone(),
    };
    let walked = tokio::select! {
        walked = walker.walk(&wanted.scenario) => walked,
        () = run.cancel.cancelled() => Err(Halt::cancelled("the user ended the run")),
        () = tokio::time::sleep(run.limits.cell) => Err(Halt::cancelled(format!(
            "the cell's limit of {} s was over (--timeout)",
            run.limits.cell.as_secs()
        ))),
    };
    walker.keep_logs(walker.chat().await).await;
    if !run.keep {
        walker.delete().await?;
        let _ = fs::remove_dir_all(&parts.terraform);
    }
    match walked {
        Ok(()) => match walker.workspace.gateway().wire().trouble() {
            None => Ok(Closing::Finished),
            Some(reason) => Ok(Closing::Stopped { reason }),
        },
        Err(Halt::Record(error)) => Err(error),
        Err(Halt::Stopped(reason)) => Ok(Closing::Stopped { reason }),
        Err(Halt::Cancelled(reason)) => Ok(Closing::Cancelled { reason }),
    }
}
