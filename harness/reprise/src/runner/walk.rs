//! Walks a scenario's steps: writes down each act before it is done, does it, writes down how it ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use reprise_engine::Exec;
use reprise_model::{
    Act, Cause, Cell, Damage, DamageKind, Event, HoldPoint, Moment, NonceBook, Observation,
    Outcome, Snapshot, WorkspaceId,
};
use serde_json::Value;
use thiserror::Error;

use super::drive::Driver;
use super::{Limits, Watcher};
use crate::agent::Installed;
use crate::module::Transition;
use crate::record::{RecordError, Recorder};
use crate::scenario::{Scenario, StartStage, StepFile};
use crate::workspace::{Begun, Ending, HOME, Workspace, WorkspaceError};

/// Why a walk did not come to its end.
#[derive(Debug, Error)]
pub(super) enum Halt {
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A step ended badly; the rest makes no sense.
    #[error("{0}")]
    Stopped(String),
    /// The user or a limit ended it.
    #[error("{0}")]
    Cancelled(String),
}

impl Halt {
    pub(super) fn cancelled(reason: impl Into<String>) -> Self {
        Self::Cancelled(reason.into())
    }
}

/// The walk of one cell.
pub(super) struct Walker<'a> {
    pub(super) cell: &'a Cell,
    pub(super) id: WorkspaceId,
    pub(super) recorder: Arc<Recorder>,
    pub(super) workspace: Workspace,
    pub(super) driver: Driver,
    pub(super) installed: Installed,
    /// What the first start has instead.
    pub(super) before: Option<Installed>,
    pub(super) limits: Limits,
    pub(super) book: NonceBook,
    pub(super) watch: Watcher<'a>,
    pub(super) epoch: u32,
    pub(super) turn: u32,
    pub(super) claimed_paths: Vec<String>,
    pub(super) logs: Vec<String>,
    /// Whether its instances may be started again by the engine itself.
    pub(super) in_place: bool,
    /// Whether they bear one name.
    pub(super) same_name: bool,
    /// Whether they are to take longer to stop than they are given.
    pub(super) slow_stop: bool,
    /// The files that hold the agent's sessions.
    pub(super) sessions: Vec<String>,
    /// Whether what stands in `/tmp` is of interest.
    pub(super) looks_at_tmp: bool,
    /// Where the model stops, if it was told to.
    pub(super) held: Option<HoldPoint>,
    /// A command of the agent's that is still under way.
    pub(super) under_way: Option<Begun>,
    /// Programs that the workspace shall not have.
    pub(super) without: Vec<String>,
}

/// What is unlike an ordinary start.
#[derive(Default)]
pub(super) struct Unlike {
    pub(super) claimed_paths_only: bool,
    pub(super) damage: Option<DamageKind>,
    pub(super) written: BTreeMap<String, String>,
    pub(super) only_begun: bool,
}

impl Walker<'_> {
    pub(super) async fn walk(&mut self, scenario: &Scenario) -> Result<(), Halt> {
        let gives_task = scenario
            .walked()
            .any(|step| matches!(step, StepFile::Task | StepFile::BeginTask));
        for step in scenario.walked() {
            match step {
                StepFile::Start => {
                    self.start(Unlike::default()).await?;
                    // Else the task's answer is what is waited for.
                    if !gives_task {
                        self.settle().await?;
                    }
                }
                StepFile::Task => self.task().await?,
                StepFile::Restart(kind) => self.restart(*kind).await?,
                StepFile::FollowUp => self.follow_up(|turn| Act::FollowUp { turn }).await?,
                StepFile::ModelFails(failures) => self.break_model(failures).await?,
                StepFile::LongAnswers(turns) => self.lengthen_answers(*turns).await?,
                StepFile::RestartNodeAgent => {
                    self.act(Act::RestartNodeAgent, async |walker| {
                        walker.workspace.restart_node_agent().await?;
                        Ok(Outcome::Ok)
                    })
                    .await?;
                }
                StepFile::GrowVolume => {
                    self.act(Act::GrowVolume, async |walker| {
                        walker.workspace.grow_volume().await?;
                        Ok(Outcome::Ok)
                    })
                    .await?;
                }
                StepFile::HoldModel(at) => self.hold_model(*at).await?,
                StepFile::BeginTask => self.begin(Act::BeginTask, 0).await?,
                StepFile::BeginFollowUp => {
                    self.turn += 1;
                    let turn = self.turn;
                    self.begin(Act::BeginFollowUp { turn }, turn).await?;
                }
                StepFile::CutStart(stage) => self.cut_start(*stage).await?,
                StepFile::OpenOtherSession => self.other_session().await?,
                StepFile::SnapshotsFail(by) => self.break_snapshots(*by).await?,
                StepFile::TryFollowUp => {
                    match self.follow_up(|turn| Act::TryFollowUp { turn }).await {
                        Err(Halt::Stopped(_)) | Ok(()) => {}
                        Err(halt) => return Err(halt),
                    }
                }
                StepFile::FreezeAgentapi => self.freeze().await?,
                StepFile::SearchHome => self.search_home().await?,
                StepFile::FillDisk => self.ballast(Act::FillDisk, &["fill-disk", HOME]).await?,
                StepFile::FreeDisk => {
                    self.ballast(Act::FreeDisk, &["fill-disk", HOME, "--free"])
                        .await?;
                }
                // Its steps are walked in its place.
                StepFile::Repeat(_) => {}
            }
        }
        Ok(())
    }

    async fn task(&mut self) -> Result<(), Halt> {
        self.act(Act::Task, async |walker| {
            walker
                .driver
                .task(
                    &walker.workspace,
                    &walker.recorder,
                    &walker.book,
                    &walker.limits,
                    walker.epoch,
                )
                .await
        })
        .await?;
        self.settle().await
    }

    /// Does one act. What is not well ends the walk; how it ended is in the record.
    pub(super) async fn act(
        &mut self,
        act: Act,
        body: impl AsyncFnOnce(&mut Self) -> Result<Outcome, WorkspaceError>,
    ) -> Result<(), Halt> {
        let op = self.recorder.intend(act.clone())?;
        (self.watch)(Event::StepStarted {
            cell: self.cell.clone(),
            act: act.clone(),
        });
        let began = Instant::now();
        let outcome = match body(self).await {
            Ok(outcome) => outcome,
            Err(WorkspaceError::Record(error)) => return Err(error.into()),
            Err(error) => Outcome::Unknown {
                reason: error.to_string(),
            },
        };
        let outcome = match (outcome, self.workspace.gateway().wire().trouble()) {
            // Where the wire was lost, nobody knows what the agent did.
            (Outcome::Failed { reason }, Some(trouble)) => Outcome::Unknown {
                reason: format!("{trouble}; {reason}"),
            },
            (outcome, _) => outcome,
        };
        self.recorder.ended(op, outcome.clone())?;
        (self.watch)(Event::StepEnded {
            cell: self.cell.clone(),
            act: act.clone(),
            outcome: outcome.clone(),
            millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        match outcome {
            Outcome::Ok => Ok(()),
            Outcome::Failed { reason } | Outcome::Unknown { reason } => {
                Err(Halt::Stopped(format!("to {act}: {reason}")))
            }
        }
    }

    pub(super) async fn render(&mut self, transition: Transition) -> Result<(), Halt> {
        if !self.driver.renders() {
            return Ok(());
        }
        let act = Act::Render {
            transition: transition.as_str().to_owned(),
        };
        self.act(act, async |walker| {
            Ok(walker.driver.render(transition).await)
        })
        .await
    }

    pub(super) async fn start(&mut self, unlike: Unlike) -> Result<(), Halt> {
        self.render(Transition::Start).await?;
        let epoch = self.epoch;
        self.act(Act::Start { epoch }, async |walker| {
            let installed = match &walker.before {
                Some(before) if epoch == 0 => before,
                _ => &walker.installed,
            };
            let plan = walker
                .driver
                .start_plan(&walker.workspace, &walker.book, installed);
            let mut plan = match plan {
                Ok(plan) => plan,
                Err(error) => {
                    return Ok(Outcome::Unknown {
                        reason: error.to_string(),
                    });
                }
            };
            if unlike.claimed_paths_only {
                plan.keep_only = Some(walker.claimed_paths.clone());
            }
            plan.damage = unlike.damage.map(|kind| Damage {
                kind,
                files: walker.sessions.clone(),
            });
            plan.written = unlike.written;
            plan.only_begun = unlike.only_begun;
            plan.without.clone_from(&walker.without);
            plan.in_place = walker.in_place;
            plan.same_name = walker.same_name;
            plan.slow_stop = walker.slow_stop;
            let starting = walker
                .workspace
                .start(epoch, plan, walker.limits.start)
                .await?;
            if unlike.only_begun {
                return Ok(Outcome::Ok);
            }
            for program in &walker.without {
                let look = Exec::new(["sh", "-c", "command -v \"$0\"", program.as_str()]);
                if walker.workspace.exec(look).await?.code == 0 {
                    return Ok(Outcome::Unknown {
                        reason: format!("{program} is there all the same"),
                    });
                }
            }
            walker
                .driver
                .started(starting, &walker.workspace, &walker.recorder, epoch)
                .await
        })
        .await
    }

    /// Starts the workspace and kills it in this stage.
    async fn cut_start(&mut self, stage: StartStage) -> Result<(), Halt> {
        self.start(Unlike {
            only_begun: stage == StartStage::ScriptsBegun,
            ..Unlike::default()
        })
        .await?;
        let epoch = self.epoch;
        let act = Act::Kill {
            by: Some(Cause::CutOff),
        };
        self.act(act, async |walker| {
            walker.workspace.end(Ending::Kill, epoch + 1).await?;
            Ok(Outcome::Ok)
        })
        .await?;
        self.epoch += 1;
        Ok(())
    }

    pub(super) async fn settle(&mut self) -> Result<(), Halt> {
        let epoch = self.epoch;
        self.act(Act::Settle { epoch }, async |walker| {
            walker
                .driver
                .settle(&walker.workspace, &walker.recorder, &walker.limits)
                .await
        })
        .await
    }

    /// Records what lies in the home, or in `/tmp`; `look` sees it first.
    pub(super) async fn probe(
        &mut self,
        moment: Moment,
        look: impl FnOnce(&Snapshot),
    ) -> Result<(), Halt> {
        let act = Act::Probe {
            snapshot: moment.to_string(),
        };
        self.act(act, async |walker| {
            let dir = match moment {
                Moment::Tmp(_) => "/tmp",
                _ => HOME,
            };
            let snapshot = walker.workspace.probe(dir).await?;
            look(&snapshot);
            walker.recorder.snapshot(moment, snapshot)?;
            Ok(Outcome::Ok)
        })
        .await
    }

    /// Records what the UI shows, and gives it back; nothing, where there is no UI.
    pub(super) async fn look_at_chat(&mut self, moment: Moment) -> Result<Option<Value>, Halt> {
        let chat = self.chat().await;
        if let Some(chat) = &chat
            && let Ok(messages) = reprise_gateway::shown(chat.to_string().as_bytes(), &self.book)
        {
            self.recorder.observe(Observation::Shown {
                moment: moment.to_string(),
                messages,
            })?;
        }
        Ok(chat)
    }

    /// What the UI shows.
    pub(super) async fn chat(&self) -> Option<Value> {
        self.driver.messages(&self.workspace).await
    }

    async fn follow_up(&mut self, act: impl FnOnce(u32) -> Act) -> Result<(), Halt> {
        self.turn += 1;
        let turn = self.turn;
        let epoch = self.epoch;
        self.act(act(turn), async |walker| {
            walker
                .driver
                .follow_up(
                    &walker.workspace,
                    &walker.recorder,
                    &walker.book,
                    &walker.limits,
                    (epoch, turn),
                )
                .await
        })
        .await?;
        self.settle().await
    }

    /// Keeps what the agent and its module wrote to logs in the home, and what the UI showed. A workspace that has ended has
    /// nothing more to say, and nothing here may hide what happened before.
    pub(super) async fn keep_logs(&self, chat: Option<Value>) {
        if let Some(chat) = chat {
            let name = format!("{}-agentapi-messages.json", self.epoch);
            let _ = self.recorder.log(&name, &chat.to_string());
        }
        for path in &self.logs {
            let Ok(output) = self.workspace.exec(Exec::new(["cat", path.as_str()])).await else {
                return;
            };
            if output.code != 0 {
                continue;
            }
            let name = format!(
                "{}-home-{}",
                self.epoch,
                path.trim_start_matches('.').replace('/', "-")
            );
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let _ = self.recorder.log(&name, line);
            }
        }
    }

    pub(super) async fn delete(&mut self) -> Result<(), RecordError> {
        let deleted = self
            .act(Act::Delete, async |walker| {
                walker.workspace.delete().await?;
                Ok(Outcome::Ok)
            })
            .await;
        match deleted {
            Err(Halt::Record(error)) => Err(error),
            // What is left of it stands in the record; `reprise gc` finds it.
            Err(_) | Ok(()) => Ok(()),
        }
    }
}
