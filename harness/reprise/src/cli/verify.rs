//! `reprise verify` and `reprise repro`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reprise_model::RunId;
use reprise_report::{Live, Style};
use tokio_util::sync::CancellationToken;

use super::args::{ClusterArgs, EngineArg, ReproArgs, VerifyArgs};
use super::{Exit, Failure, places, run};
use crate::runner::{CELL_LIMIT, Limits, ModuleChoice, Run, RunOutcome, Wanted};
use crate::scenario::Catalogue;
use crate::tools::{Cache, Tools};
use crate::verify::random::{self, Case, Drawn};
use crate::verify::{self, Fault, FaultyEngine};

/// How many healthy cells are measured where nobody says.
const HEALTHY: usize = 100;

/// The engine and the directory of a verification.
struct Bench {
    run: Run,
    directory: PathBuf,
    live: Live,
}

impl Bench {
    async fn open(
        engine: Option<EngineArg>,
        runs: &Path,
        jobs: Option<u16>,
        agentapi_source: Option<String>,
    ) -> Result<Self, Failure> {
        let id = RunId::draw();
        let inner = places::engine(engine.map(Into::into), &ClusterArgs::default(), id).await?;
        let directory = run::directory(runs, id)?;
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let style = if std::io::stderr().is_terminal() {
            Style::Terminal
        } else {
            Style::Lines
        };
        Ok(Self {
            run: Run {
                id,
                engine: Arc::new(FaultyEngine::new(inner)),
                tools: Tools::new(Cache::of_user(), agentapi_source),
                modules: ModuleChoice::new(
                    None,
                    None,
                    Default::default(),
                    directory.join("builtin-registry"),
                ),
                program: places::program()?,
                directory: directory.clone(),
                jobs: jobs.map_or(8 * processors, usize::from),
                keep: false,
                gateway_port: None,
                limits: Limits::of_cell(CELL_LIMIT),
                cancel: CancellationToken::new(),
            },
            directory,
            live: Live::new(style),
        })
    }

    async fn measure(&self, wanted: Vec<Wanted>) -> RunOutcome {
        let watcher = tokio::spawn(run::end_on_signal(self.run.cancel.clone()));
        let outcome = self
            .run
            .measure(wanted, &|event| self.live.show(&event))
            .await;
        watcher.abort();
        let _ = std::fs::remove_dir_all(self.directory.join("builtin-registry"));
        outcome
    }

    /// The case of a seed, and if something is wrong with it, the shortest that shows the same.
    async fn draw(&self, seed: u64, catalogue: &Catalogue) -> Result<Drawn, Failure> {
        let mut tries = 0;
        let measure = async |case: &Case| {
            tries += 1;
            let wanted = random::wanted(case, format!("{seed}-{tries}"), catalogue)?;
            let outcome = self.measure(vec![wanted]).await;
            if outcome.cancelled {
                return Err(Failure::message(Exit::Interrupted, "it was interrupted"));
            }
            if let Some(what) = outcome.not_measured.first() {
                return Err(Failure::message(Exit::Unavailable, &what.reason));
            }
            Ok(outcome
                .results
                .into_iter()
                .flat_map(|result| result.verdicts)
                .map(|verdict| (verdict.check, verdict.judgement))
                .collect())
        };
        random::draw(seed, measure).await
    }
}

pub(super) fn main(args: VerifyArgs) -> Result<Exit, Failure> {
    let catalogue = Catalogue::builtin()?;
    if let Some(count) = args.random {
        return places::runtime()?.block_on(draw(args, count, &catalogue));
    }
    let all = verify::builtin().map_err(|error| Failure::new(Exit::BadFile, error))?;
    let faults = chosen(&args.faults, &all)?;
    let healthy = args.healthy.unwrap_or(match args.faults.is_empty() {
        true => HEALTHY,
        false => 0,
    });
    let mut wanted = verify::seeded(&faults, &catalogue)?;
    wanted.extend(verify::healthy(healthy, &all, &catalogue)?);
    places::runtime()?.block_on(async {
        let bench = Bench::open(args.engine, &args.runs, args.jobs, args.agentapi_source).await?;
        let outcome = bench.measure(wanted).await;
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

/// Random scenarios, one after the other: each is made shorter on its own.
async fn draw(args: VerifyArgs, count: u64, catalogue: &Catalogue) -> Result<Exit, Failure> {
    let bench = Bench::open(args.engine, &args.runs, args.jobs, args.agentapi_source).await?;
    let first = u64::from(bench.run.id.uuid().as_fields().0);
    let mut wrong = 0;
    for seed in (first..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        let drawn = bench.draw(seed, catalogue).await?;
        wrong += u64::from(drawn.problem.is_some());
        run::show(&told(&drawn))?;
    }
    run::show(&format!(
        "{count} random scenarios, {wrong} of them wrong\n"
    ))?;
    Ok(if wrong == 0 { Exit::Pass } else { Exit::Fail })
}

pub(super) fn repro(args: ReproArgs) -> Result<Exit, Failure> {
    let catalogue = Catalogue::builtin()?;
    places::runtime()?.block_on(async {
        let bench = Bench::open(args.engine, &args.runs, Some(1), None).await?;
        let drawn = bench.draw(args.seed, &catalogue).await?;
        run::show(&told(&drawn))?;
        run::show(&text(&drawn))?;
        Ok(match drawn.problem {
            None => Exit::Pass,
            Some(_) => Exit::Fail,
        })
    })
}

fn told(drawn: &Drawn) -> String {
    let fault = drawn
        .fault
        .map_or_else(String::new, |fault| format!(" with the fault {fault}"));
    let steps = drawn.scenario.steps.len();
    match &drawn.problem {
        None => format!("seed {}: {steps} steps{fault}, as it must be\n", drawn.seed),
        Some(problem) => format!(
            "seed {}: {problem}; the shortest scenario that shows it has {steps} steps{fault} (`reprise repro {}`)\n{}",
            drawn.seed,
            drawn.seed,
            text(drawn)
        ),
    }
}

/// The scenario, as it could be kept.
fn text(drawn: &Drawn) -> String {
    serde_json::to_value(&drawn.scenario)
        .ok()
        .and_then(|value| serde_yaml::to_string(&value).ok())
        .expect("a scenario is YAML")
}

fn chosen(names: &[String], all: &[Fault]) -> Result<Vec<Fault>, Failure> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let known = || all.iter().map(|fault| fault.name.as_str());
    names
        .iter()
        .map(|name| {
            let found = all.iter().find(|fault| fault.name == *name).cloned();
            found.ok_or_else(|| {
                let near = crate::scenario::nearest(name, known());
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
