//! Walks scenarios and records what happens. It judges nothing and names no reporter: whoever watches is called with
//! [`Event`]s.

mod answers;
mod cell;
mod command;
mod drive;
mod hold;
mod limits;
mod meddle;
mod plan;
mod restart;
mod settings;
mod settle;
mod walk;
mod wanted;
mod words;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use reprise_engine::Engine;
use reprise_model::{Cell, CellResult, Event, Layer, NotMeasured, RunId};
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Installed};
use crate::tools::Tools;
use crate::workspace::with_causes;

pub(crate) use cell::judge;
pub use limits::Limits;
pub use plan::{ModuleChoice, PlanError};
pub use wanted::Wanted;

/// Takes events as they happen.
pub type Watcher<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// What is the same for all cells of a run.
pub struct Run {
    /// The run.
    pub id: RunId,
    /// Where workspaces run.
    pub engine: Arc<dyn Engine>,
    /// What cells need.
    pub tools: Tools,
    /// Which modules.
    pub modules: ModuleChoice,
    /// This program, static.
    pub program: PathBuf,
    /// Where records go.
    pub directory: PathBuf,
    /// Cells at once.
    pub jobs: usize,
    /// Whether workspaces are kept.
    pub keep: bool,
    /// The gateway's port inside workspaces.
    pub gateway_port: Option<u16>,
    /// How long things may take.
    pub limits: Limits,
    /// Ends the run.
    pub cancel: CancellationToken,
}

/// What a run gave.
#[derive(Debug, Default)]
pub struct RunOutcome {
    /// Cells that were measured, in the order in which they were wanted.
    pub results: Vec<CellResult>,
    /// Cells that could not be.
    pub not_measured: Vec<NotMeasured>,
    /// Whether the run was cut short.
    pub cancelled: bool,
}

impl Run {
    /// Measures cells. What cannot be measured is said, and does not keep others from being measured.
    pub async fn measure(&self, wanted: Vec<Wanted>, watch: Watcher<'_>) -> RunOutcome {
        watch(Event::RunStarted {
            run: self.id,
            cells: wanted.len(),
            directory: self.directory.display().to_string(),
        });
        let mut outcome = RunOutcome::default();
        let mut ready = Vec::new();
        let mut obtained: HashMap<_, Result<Arc<plan::Ready>, String>> = HashMap::new();
        for wanted in wanted {
            let cell = self.cell(&wanted);
            let lacking = wanted
                .scenario
                .powers()
                .into_iter()
                .find_map(|power| self.engine.lacks(power));
            let lacking = lacking
                .map(|missing| missing.to_string())
                .or_else(|| wanted.unfit());
            if let Some(reason) = lacking {
                let what = NotMeasured { cell, reason };
                watch(Event::CellNotMeasured { what: what.clone() });
                outcome.not_measured.push(what);
                continue;
            }
            let key = (
                wanted.profile.name.to_string(),
                wanted.layer,
                wanted.scenario.with.agentapi.clone(),
                wanted.scenario.with.moves_up,
            );
            let ready_for = match obtained.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let prepared = tokio::select! {
                        prepared = self.prepare(&wanted, watch) => prepared.map(Arc::new),
                        () = self.cancel.cancelled() => Err("the run was cut short".to_owned()),
                    };
                    obtained.entry(key).or_insert(prepared).clone()
                }
            };
            match ready_for {
                Ok(prepared) => match wanted.unset(prepared.module.as_ref()) {
                    None => ready.push((cell, wanted, prepared)),
                    Some(reason) => {
                        let what = NotMeasured { cell, reason };
                        watch(Event::CellNotMeasured { what: what.clone() });
                        outcome.not_measured.push(what);
                    }
                },
                Err(reason) => {
                    let what = NotMeasured { cell, reason };
                    watch(Event::CellNotMeasured { what: what.clone() });
                    outcome.not_measured.push(what);
                }
            }
        }
        // In order of their ends: a slow cell must not keep the ones behind it from beginning.
        let measured = stream::iter(ready.into_iter().enumerate())
            .map(|(place, (cell, wanted, prepared))| async move {
                if self.cancel.is_cancelled() {
                    let reason = "the run was cut short".to_owned();
                    return (place, Err(NotMeasured { cell, reason }));
                }
                let result = cell::measure(self, cell, &wanted, &prepared, watch).await;
                (place, Ok(result))
            })
            .buffer_unordered(self.jobs.max(1));
        let mut measured: Vec<_> = measured.collect().await;
        measured.sort_by_key(|(place, _)| *place);
        for (_, measured) in measured {
            match measured {
                Ok(result) => outcome.results.push(result),
                Err(what) => {
                    watch(Event::CellNotMeasured { what: what.clone() });
                    outcome.not_measured.push(what);
                }
            }
        }
        if !self.keep
            && let Err(error) = self.engine.close().await
        {
            let what = format!(
                "what belongs to the run alone was not removed (`reprise gc` does it): {}",
                with_causes(&error)
            );
            watch(Event::Preparing { what });
        }
        outcome.cancelled = self.cancel.is_cancelled();
        watch(Event::RunEnded {
            cancelled: outcome.cancelled,
        });
        outcome
    }

    fn cell(&self, wanted: &Wanted) -> Cell {
        Cell {
            engine: self.engine.kind(),
            agent: wanted.profile.name.clone(),
            layer: wanted.layer,
            scenario: wanted.scenario.name.clone(),
        }
    }

    /// Obtains what an agent needs at a layer.
    async fn prepare(&self, wanted: &Wanted, watch: Watcher<'_>) -> Result<plan::Ready, String> {
        let progress = |what: &str| {
            watch(Event::Preparing {
                what: what.to_owned(),
            });
        };
        if wanted.layer == Layer::Native && wanted.profile.native.is_none() {
            return Err(format!(
                "the profile of {} names no native commands",
                wanted.profile.name
            ));
        }
        let mut profile = wanted.profile.clone();
        if let (Some(module), Some(version)) = (&mut profile.module, &wanted.scenario.with.agentapi)
        {
            module.agentapi = vec![version.clone()];
        }
        let installed: Installed = agent::obtain(
            &profile,
            wanted.subject,
            wanted.layer,
            &self.tools,
            &self.program,
            &progress,
        )
        .await?;
        let module = match (wanted.layer, &wanted.profile.module) {
            (Layer::Module, Some(module)) => {
                if self.gateway_port == Some(module.port) {
                    return Err(format!(
                        "the gateway's port {} is taken by AgentAPI in the workspace (choose another --gateway-port)",
                        module.port
                    ));
                }
                let place = self.tools.cache();
                let chosen = self
                    .modules
                    .choose(module, place, &progress)
                    .await
                    .map_err(|error| error.to_string())?;
                Some(chosen)
            }
            _ => None,
        };
        self.engine
            .prepare(&progress)
            .await
            .map_err(|error| with_causes(&error))?;
        let before = if wanted.scenario.with.moves_up {
            let before =
                agent::obtain_before(&wanted.profile, &installed, &self.tools, &progress).await?;
            Some(before)
        } else {
            None
        };
        Ok(plan::Ready {
            installed,
            before,
            module,
        })
    }
}

/// How long one cell may take where nobody says otherwise.
pub const CELL_LIMIT: Duration = Duration::from_secs(600);
