//! How a workspace is ended and started again, with a look at it before and after.

use reprise_model::{Act, Cause, Moment, Observation, Outcome};
use serde::Deserialize;

use super::walk::{Halt, Unlike, Walker};
use crate::module::Transition;
use crate::scenario::RestartKind;
use crate::workspace::Ending;

/// The mark that a start leaves in the workspace.
#[derive(Deserialize)]
struct Found {
    home: bool,
    outside: Vec<String>,
    process: bool,
}

/// What a restart records, and how it ends the workspace.
fn ending(kind: RestartKind) -> (Act, Ending) {
    let stop = |by| Act::Stop { by };
    let kill = |by| Act::Kill { by };
    match kind {
        RestartKind::Stop
        | RestartKind::ClaimedPathsOnly
        | RestartKind::Reattach
        | RestartKind::SessionGone
        | RestartKind::SessionEmpty
        | RestartKind::SessionTruncated
        | RestartKind::SessionCorrupt
        | RestartKind::SessionOld
        | RestartKind::TmpTaken
        | RestartKind::ForeignHome
        | RestartKind::StateCorrupt
        | RestartKind::StateNewer
        | RestartKind::Renamed
        | RestartKind::AtOnce => (stop(None), Ending::Stop),
        RestartKind::PowerLoss => (kill(Some(Cause::PowerLoss)), Ending::PowerLoss),
        RestartKind::Drain => (stop(Some(Cause::Drain)), Ending::Drain),
        RestartKind::ShortGrace => (stop(Some(Cause::ShortGrace)), Ending::ShortGrace),
        RestartKind::Kill | RestartKind::StalePid => (kill(None), Ending::Kill),
        RestartKind::KillContainer => (kill(Some(Cause::ContainerKilled)), Ending::KillContainer),
        RestartKind::OutOfMemory => (kill(Some(Cause::OutOfMemory)), Ending::OutOfMemory),
    }
}

impl Walker<'_> {
    /// The mark of a start: this workspace's own, and no nonce of the wire.
    fn mark(&self, epoch: u32) -> String {
        format!("mark-{epoch}-{}", self.id)
    }

    pub(super) async fn restart(&mut self, kind: RestartKind) -> Result<(), Halt> {
        let epoch = self.epoch;
        let mark = self.mark(epoch);
        self.act(Act::PlantMarks { epoch }, async |walker| {
            let args = ["plant-marks", mark.as_str()];
            let _: serde_json::Value = walker.workspace.role(&args, Vec::new(), false).await?;
            Ok(Outcome::Ok)
        })
        .await?;
        self.probe(Moment::Before(epoch + 1), |_| ()).await?;
        let chat = self.look_at_chat(Moment::Before(epoch + 1)).await?;
        self.look_at_processes().await?;
        // A module writes them anew at each start.
        self.keep_logs(chat).await;
        let mut unlike = Unlike {
            claimed_paths_only: kind == RestartKind::ClaimedPathsOnly,
            damage: kind.damage(),
            ..Unlike::default()
        };
        unlike.written = self.driver.written(kind);
        if kind == RestartKind::TmpTaken {
            unlike.written = self.files_in_tmp().await?;
        }
        if kind == RestartKind::ForeignHome {
            self.give_home_away().await?;
        }
        self.end(kind).await?;
        if kind == RestartKind::Renamed {
            self.driver.rename();
        }
        self.epoch += 1;
        self.start(unlike).await?;
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
        if kind == RestartKind::AtOnce {
            return Ok(());
        }
        self.settle().await?;
        if self.looks_at_tmp {
            self.probe(Moment::Tmp(epoch + 1), |_| ()).await?;
        }
        self.probe(Moment::Settled(epoch + 1), |_| ()).await?;
        self.look_at_chat(Moment::Settled(epoch + 1)).await?;
        Ok(())
    }

    /// Ends the workspace.
    async fn end(&mut self, kind: RestartKind) -> Result<(), Halt> {
        let next = self.epoch + 1;
        let (act, ending) = ending(kind);
        let by_itself = matches!(act, Act::Stop { .. }) && kind != RestartKind::ShortGrace;
        self.act(act, async |walker| {
            let ended = walker.workspace.end(ending, next).await?;
            // It has ended with its workspace.
            walker.under_way = None;
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
        Ok(())
    }
}
