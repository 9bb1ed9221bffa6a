//! `reprise verify`.

use std::io::IsTerminal;
use std::sync::Arc;

use reprise_model::RunId;
use reprise_report::{Live, Style};
use tokio_util::sync::CancellationToken;

use super::args::{ClusterArgs, VerifyArgs};
use super::{Exit, Failure, places, run};
use crate::runner::{CELL_LIMIT, Limits, ModuleChoice, Run};
use crate::scenario::Catalogue;
use crate::tools::{Cache, Tools};
use crate::verify::{self, Fault, FaultyEngine};

/// How many healthy cells are measured where nobody says.
const HEALTHY: usize = 100;

pub(super) fn main(args: VerifyArgs) -> Result<Exit, Failure> {
    let catalogue = Catalogue::builtin()?;
    let all = verify::builtin().map_err(|error| Failure::new(Exit::BadFile, error))?;
    let faults = chosen(&args.faults, &all)?;
    let healthy = args.healthy.unwrap_or(match args.faults.is_empty() {
        true => HEALTHY,
        false => 0,
    });
    let mut wanted = verify::seeded(&faults, &catalogue)?;
    wanted.extend(verify::healthy(healthy, &all, &catalogue)?);
    places::runtime()?.block_on(async {
        let id = RunId::draw();
        let inner =
            places::engine(args.engine.map(Into::into), &ClusterArgs::default(), id).await?;
        let directory = run::directory(&args.runs, id)?;
        let cancel = CancellationToken::new();
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let run = Run {
            id,
            engine: Arc::new(FaultyEngine::new(inner)),
            tools: Tools::new(Cache::of_user(), args.agentapi_source),
            modules: ModuleChoice::new(
                None,
                None,
                Default::default(),
                directory.join("builtin-registry"),
            ),
            program: places::program()?,
            directory: directory.clone(),
            jobs: args.jobs.map_or(8 * processors, usize::from),
            keep: false,
            gateway_port: None,
            limits: Limits::of_cell(CELL_LIMIT),
            cancel: cancel.clone(),
        };
        let style = if std::io::stderr().is_terminal() {
            Style::Terminal
        } else {
            Style::Lines
        };
        let live = Live::new(style);
        let watcher = tokio::spawn(run::end_on_signal(cancel));
        let outcome = run.measure(wanted, &|event| live.show(&event)).await;
        watcher.abort();
        let _ = std::fs::remove_dir_all(directory.join("builtin-registry"));
        let cancelled = outcome.cancelled;
        let verification = verify::conclude(&faults, outcome);
        let text = if args.json {
            let text = serde_json::to_string_pretty(&verification);
            text.expect("a verification is JSON") + "\n"
        } else {
            let width = (!std::io::stdout().is_terminal()).then_some(200);
            reprise_report::verification(&verification, width)
        };
        run::show(&text)?;
        Ok(match verification.is_right() {
            _ if cancelled => Exit::Interrupted,
            true => Exit::Pass,
            false => Exit::Fail,
        })
    })
}

fn chosen(names: &[String], all: &[Fault]) -> Result<Vec<Fault>, Failure> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    names
        .iter()
        .map(|name| {
            all.iter()
                .find(|fault| fault.name == *name)
                .cloned()
                .ok_or_else(|| {
                    let near =
                        crate::scenario::nearest(name, all.iter().map(|fault| fault.name.as_str()));
                    let hint = near.map_or_else(
                        || "scenarios/faults.yaml names them".to_owned(),
                        |near| format!("did you mean `{near}`?"),
                    );
                    let message = format!("there is no fault `{name}` ({hint})");
                    Failure::message(Exit::Usage, message)
                })
        })
        .collect()
}
