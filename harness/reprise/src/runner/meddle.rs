//! What a scenario does to a workspace beside restarting it: a model that stops in the middle, a disk that is full, a session of the
//! user's own.

use std::collections::BTreeMap;

use reprise_engine::Exec;
use reprise_gateway::ModelFault;
use reprise_model::{Act, HoldPoint, Moment, Observation, Outcome, SnapshotFault};

use super::hold::Held;
use super::walk::{Halt, Walker};
use crate::scenario::ModelFailure;
use crate::workspace::{HOME, WorkspaceError};

impl Walker<'_> {
    pub(super) async fn break_model(&mut self, failures: &[ModelFailure]) -> Result<(), Halt> {
        let act = Act::BreakModel {
            turns: failures.len(),
        };
        let faults = failures.iter().map(|failure| match failure {
            ModelFailure::RateLimited => ModelFault::Status(429),
            ModelFailure::ServerError => ModelFault::Status(500),
            ModelFailure::BrokenStream => ModelFault::BrokenStream,
        });
        self.break_turns(act, faults.collect()).await
    }

    /// Has the model do this in the agent's next turns.
    async fn break_turns(&mut self, act: Act, faults: Vec<ModelFault>) -> Result<(), Halt> {
        self.act(act, async |walker| {
            let gateway = walker.workspace.gateway();
            gateway
                .break_turns(faults)
                .await
                .map_err(WorkspaceError::Gateway)?;
            Ok(Outcome::Ok)
        })
        .await
    }

    pub(super) async fn lengthen_answers(&mut self, turns: u16) -> Result<(), Halt> {
        let turns = usize::from(turns);
        self.break_turns(
            Act::LengthenAnswers { turns },
            vec![ModelFault::AtLength; turns],
        )
        .await
    }

    pub(super) async fn hold_model(&mut self, at: HoldPoint) -> Result<(), Halt> {
        self.held = Some(at);
        self.break_turns(Act::HoldModel { at }, vec![ModelFault::Hold(at)])
            .await
    }

    /// Begins a turn that the model holds.
    pub(super) async fn begin(&mut self, act: Act, turn: u32) -> Result<(), Halt> {
        let held = Held {
            epoch: self.epoch,
            turn,
            at: self.held.unwrap_or(HoldPoint::Request),
        };
        self.act(act, async |walker| {
            let begun = walker
                .driver
                .begin(&walker.workspace, &walker.book, &walker.limits, held);
            let (outcome, begun) = begun.await?;
            walker.under_way = begun;
            Ok(outcome)
        })
        .await
    }

    pub(super) async fn other_session(&mut self) -> Result<(), Halt> {
        self.act(Act::OpenOtherSession, async |walker| {
            walker
                .driver
                .other_session(
                    &walker.workspace,
                    &walker.recorder,
                    &walker.book,
                    &walker.limits,
                )
                .await
        })
        .await
    }

    pub(super) async fn break_snapshots(&mut self, by: SnapshotFault) -> Result<(), Halt> {
        self.act(Act::BreakSnapshots { by }, async |walker| {
            walker
                .workspace
                .gateway()
                .break_snapshots(Some(by))
                .await
                .map_err(WorkspaceError::Gateway)?;
            Ok(Outcome::Ok)
        })
        .await
    }

    pub(super) async fn freeze(&mut self) -> Result<(), Halt> {
        self.act(Act::FreezeAgentapi, async |walker| {
            let args = ["freeze", "agentapi"];
            let count: u32 = walker.workspace.role(&args, Vec::new(), false).await?;
            Ok(match count {
                0 => Outcome::Failed {
                    reason: "AgentAPI does not run".to_owned(),
                },
                _ => Outcome::Ok,
            })
        })
        .await
    }

    /// Writes down what runs, if a module is there that started it.
    pub(super) async fn look_at_processes(&self) -> Result<(), Halt> {
        if !self.driver.renders() {
            return Ok(());
        }
        let lines = self
            .workspace
            .role(&["processes"], Vec::new(), false)
            .await
            // A look that fails is missed by the check that needs it.
            .unwrap_or_default();
        self.recorder.observe(Observation::Processes {
            epoch: self.epoch,
            lines,
        })?;
        Ok(())
    }

    pub(super) async fn search_home(&mut self) -> Result<(), Halt> {
        self.act(Act::SearchHome, async |walker| {
            let found: BTreeMap<String, Vec<String>> = walker
                .workspace
                .role(&["search", HOME], Vec::new(), false)
                .await?;
            let files = found
                .into_iter()
                .map(|(path, words)| (path, walker.book.find(&words.join(" "))))
                .collect();
            walker
                .recorder
                .observe(Observation::NoncesInFiles { files })?;
            Ok(Outcome::Ok)
        })
        .await
    }

    pub(super) async fn ballast(&mut self, act: Act, args: &[&str]) -> Result<(), Halt> {
        self.act(act, async |walker| {
            let _: serde_json::Value = walker.workspace.role(args, Vec::new(), false).await?;
            Ok(Outcome::Ok)
        })
        .await
    }

    /// The files that scripts left in `/tmp` under names of their own choosing, as somebody else would have written them.
    pub(super) async fn files_in_tmp(&mut self) -> Result<BTreeMap<String, String>, Halt> {
        const ANOTHERS: &str = "#!/bin/sh\n# Another module's file.\n";
        let mut files = BTreeMap::new();
        self.probe(Moment::Tmp(self.epoch), |snapshot| {
            files.extend(
                reprise_check::fixed_names(snapshot)
                    .map(|path| (format!("/tmp/{path}"), ANOTHERS.to_owned())),
            );
        })
        .await?;
        Ok(files)
    }

    /// Makes the home another user's.
    pub(super) async fn give_home_away(&mut self) -> Result<(), Halt> {
        const OTHER: &str = "4242:4242";
        self.act(Act::GiveHomeAway, async |walker| {
            let mut exec = Exec::new(["chown", "-R", OTHER, HOME]);
            exec.privileged = true;
            let output = walker.workspace.exec(exec).await?;
            Ok(match output.code {
                0 => Outcome::Ok,
                _ => Outcome::Unknown {
                    reason: output.text().trim().to_owned(),
                },
            })
        })
        .await
    }
}
