//! Walks a scenario's steps: writes down each act before it is done, does it, writes down how it ended.

use std::sync::Arc;
use std::time::Instant;

use reprise_engine::Exec;
use reprise_gateway::ModelFault;
use reprise_model::{
    Act, Cause, Cell, Event, Moment, NonceBook, Observation, Outcome, WorkspaceId,
};
use serde::Deserialize;
use thiserror::Error;

use super::drive::Driver;
use super::{Limits, Watcher};
use crate::agent::Installed;
use crate::module::Transition;
use crate::record::{RecordError, Recorder};
use crate::scenario::{ModelFailure, RestartKind, Scenario, StepFile};
use crate::workspace::{Ending, Workspace, WorkspaceError};

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

/// The mark that a start leaves in the workspace.
#[derive(Deserialize)]
struct Found {
    home: bool,
    outside: Vec<String>,
    process: bool,
}

/// The walk of one cell.
pub(super) struct Walker<'a> {
    pub(super) cell: &'a Cell,
    pub(super) id: WorkspaceId,
    pub(super) recorder: Arc<Recorder>,
    pub(super) workspace: Workspace,
    pub(super) driver: Driver,
    pub(super) installed: Installed,
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
}

/// What a restart records, and how it ends the workspace.
fn ending(kind: RestartKind) -> (Act, Ending) {
    let stop = |by| Act::Stop { by };
    let kill = |by| Act::Kill { by };
    match kind {
        RestartKind::Stop | RestartKind::ClaimedPathsOnly | RestartKind::Reattach => {
            (stop(None), Ending::Stop)
        }
        RestartKind::Drain => (stop(Some(Cause::Drain)), Ending::Drain),
        RestartKind::ShortGrace => (stop(Some(Cause::ShortGrace)), Ending::ShortGrace),
        RestartKind::Kill => (kill(None), Ending::Kill),
        RestartKind::KillContainer => (kill(Some(Cause::ContainerKilled)), Ending::KillContainer),
        RestartKind::OutOfMemory => (kill(Some(Cause::OutOfMemory)), Ending::OutOfMemory),
    }
}

impl Walker<'_> {
    pub(super) async fn walk(&mut self, scenario: &Scenario) -> Result<(), Halt> {
        for step in &scenario.steps {
            match step {
                StepFile::Start => self.start(false).await?,
                StepFile::Task => {
                    self.act(Act::Task, async |walker| {
                        walker
                            .driver
                            .task(
                                &walker.workspace,
                                &walker.recorder,
                                &walker.book,
                                &walker.limits,
                            )
                            .await
                    })
                    .await?;
                    self.settle().await?;
                }
                StepFile::Restart(kind) => self.restart(*kind).await?,
                StepFile::FollowUp => self.follow_up().await?,
                StepFile::ModelFails(failures) => self.break_model(failures).await?,
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
            }
        }
        Ok(())
    }

    /// Does one act. What is not well ends the walk; how it ended is in the record.
    async fn act(
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

    async fn render(&mut self, transition: Transition) -> Result<(), Halt> {
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

    async fn start(&mut self, claimed_paths_only: bool) -> Result<(), Halt> {
        self.render(Transition::Start).await?;
        let epoch = self.epoch;
        self.act(Act::Start { epoch }, async |walker| {
            let plan = walker
                .driver
                .start_plan(&walker.workspace, &walker.book, &walker.installed);
            let mut plan = match plan {
                Ok(plan) => plan,
                Err(error) => {
                    return Ok(Outcome::Unknown {
                        reason: error.to_string(),
                    });
                }
            };
            if claimed_paths_only {
                plan.keep_only = Some(walker.claimed_paths.clone());
            }
            plan.in_place = walker.in_place;
            plan.same_name = walker.same_name;
            plan.slow_stop = walker.slow_stop;
            let starting = walker
                .workspace
                .start(epoch, plan, walker.limits.start)
                .await?;
            walker
                .driver
                .started(starting, &walker.workspace, &walker.recorder)
                .await
        })
        .await
    }

    async fn settle(&mut self) -> Result<(), Halt> {
        let epoch = self.epoch;
        self.act(Act::Settle { epoch }, async |walker| {
            walker
                .driver
                .settle(&walker.workspace, &walker.recorder, &walker.limits)
                .await
        })
        .await
    }

    async fn probe(&mut self, moment: Moment) -> Result<(), Halt> {
        let act = Act::Probe {
            snapshot: moment.to_string(),
        };
        self.act(act, async |walker| {
            let snapshot = walker.workspace.probe().await?;
            walker.recorder.snapshot(moment, snapshot)?;
            Ok(Outcome::Ok)
        })
        .await
    }

    /// The mark of a start: this workspace's own, and no nonce of the wire.
    fn mark(&self, epoch: u32) -> String {
        format!("mark-{epoch}-{}", self.id)
    }

    async fn restart(&mut self, kind: RestartKind) -> Result<(), Halt> {
        let epoch = self.epoch;
        let mark = self.mark(epoch);
        self.act(Act::PlantMarks { epoch }, async |walker| {
            let args = ["plant-marks", mark.as_str()];
            let _: serde_json::Value = walker.workspace.role(&args, Vec::new(), false).await?;
            Ok(Outcome::Ok)
        })
        .await?;
        self.probe(Moment::Before(epoch + 1)).await?;
        // A module writes them anew at each start.
        self.keep_logs().await;
        let (act, ending) = ending(kind);
        let by_itself = matches!(act, Act::Stop { .. }) && kind != RestartKind::ShortGrace;
        self.act(act, async |walker| {
            let ended = walker.workspace.end(ending, epoch + 1).await?;
            Ok(if ended || !by_itself {
                Outcome::Ok
            } else {
                Outcome::Failed {
                    reason: "it did not stop within its grace and was killed".to_owned(),
                }
            })
        })
        .await?;
        if by_itself {
            self.render(Transition::Stop).await?;
        }
        self.epoch += 1;
        self.start(kind == RestartKind::ClaimedPathsOnly).await?;
        self.act(Act::FindMarks { epoch: epoch + 1 }, async |walker| {
            let args = ["find-marks", mark.as_str()];
            let found: Found = walker.workspace.role(&args, Vec::new(), false).await?;
            walker.recorder.observe(Observation::Marks {
                planted: epoch,
                home: found.home,
                outside: found.outside,
                process: found.process,
            })?;
            Ok(Outcome::Ok)
        })
        .await?;
        self.settle().await?;
        self.probe(Moment::Settled(epoch + 1)).await
    }

    async fn break_model(&mut self, failures: &[ModelFailure]) -> Result<(), Halt> {
        let act = Act::BreakModel {
            turns: failures.len(),
        };
        self.act(act, async |walker| {
            let faults = failures.iter().map(|failure| match failure {
                ModelFailure::RateLimited => ModelFault::Status(429),
                ModelFailure::ServerError => ModelFault::Status(500),
                ModelFailure::BrokenStream => ModelFault::BrokenStream,
            });
            walker
                .workspace
                .gateway()
                .break_turns(faults.collect())
                .await
                .map_err(WorkspaceError::Gateway)?;
            Ok(Outcome::Ok)
        })
        .await
    }

    async fn follow_up(&mut self) -> Result<(), Halt> {
        self.turn += 1;
        let turn = self.turn;
        let epoch = self.epoch;
        let step = Act::FollowUp { turn };
        self.act(step, async |walker| {
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

    /// Keeps what the agent and its module wrote to logs in the home, and what the UI shows. A workspace that has ended has
    /// nothing more to say, and nothing here may hide what happened before.
    pub(super) async fn keep_logs(&self) {
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
        if let Some(messages) = self.driver.messages(&self.workspace).await {
            let _ = self.recorder.log(
                &format!("{}-agentapi-messages.json", self.epoch),
                &messages.to_string(),
            );
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
