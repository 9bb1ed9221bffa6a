//! `reprise verify` and `reprise repro`.

use std::path::Path;
use std::sync::Arc;

use reprise_model::RunId;
use reprise_report::Live;
use tokio_util::sync::CancellationToken;

use super::args::EngineArg;
use super::measuring::{AgentapiArgs, ClusterArgs, ReproArgs, VerifyArgs};
use super::show::{found, show};
use super::{Exit, Failure, places, run};
use crate::runner::{CELL_LIMIT, Limits, ModuleChoice, Run, RunOutcome, Wanted};
use crate::scenario::Catalogue;
use crate::tools::{Cache, Tools};
use crate::verify::random::{self, Case, Drawn};
use crate::verify::{self, Fault, FaultyEngine};

/// How many healthy cells are measured where nobody says.
const HEALTHY: usize = 100;

/// What a verification measures with.
struct Bench {
    run: Run,
    live: Live,
}

impl Bench {
    async fn open(
        engine: Option<EngineArg>,
        runs: &Path,
        jobs: Option<u16>,
        agentapi: AgentapiArgs,
    ) -> Result<Self, Failure> {
        let id = RunId::draw();
        let inner = places::engine(engine.map(Into::into), &ClusterArgs::default(), id).await?;
        let directory = run::directory(runs, id)?;
        Ok(Self {
            run: Run {
                id,
                engine: Arc::new(FaultyEngine::new(inner)),
                tools: Tools::new(Cache::of_user(), agentapi.agentapi_source),
                modules: ModuleChoice::new(
                    None,
                    None,
                    Default::default(),
                    run::builtin_registry(&directory),
                ),
                program: places::program()?,
                directory,
                jobs: run::jobs(jobs, 8),
                keep: false,
                gateway_port: None,
                limits: Limits::of_cell(CELL_LIMIT),
                cancel: CancellationToken::new(),
            },
            live: run::live(),
        })
    }

    async fn measure(&self, wanted: Vec<Wanted>) -> RunOutcome {
        run::measure(&self.run, &self.live, wanted).await
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
        let bench = Bench::open(args.engine, &args.runs, args.jobs, args.agentapi).await?;
        let outcome = bench.measure(wanted).await;
        let cancelled = outcome.cancelled;
        let verification = verify::conclude(&faults, outcome);
        found(
            &verification,
            args.format,
            reprise_report::verification,
            200,
        )?;
        Ok(match verification.is_right() {
            _ if cancelled => Exit::Interrupted,
            true => Exit::Pass,
            false => Exit::Fail,
        })
    })
}

/// Random scenarios, one after the other: each is made shorter on its own.
async fn draw(args: VerifyArgs, count: u64, catalogue: &Catalogue) -> Result<Exit, Failure> {
    let bench = Bench::open(args.engine, &args.runs, args.jobs, args.agentapi).await?;
    let first = u64::from(bench.run.id.uuid().as_fields().0);
    let mut wrong = 0;
    for seed in (first..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        let drawn = bench.draw(seed, catalogue).await?;
        wrong += u64::from(drawn.problem.is_some());
        show(&told(&drawn))?;
    }
    show(&format!(
        "{count} random scenarios, {wrong} of them wrong\n"
    ))?;
    Ok(if wrong == 0 { Exit::Pass } else { Exit::Fail })
}

pub(super) fn repro(args: ReproArgs) -> Result<Exit, Failure> {
    let catalogue = Catalogue::builtin()?;
    places::runtime()?.block_on(async {
        let bench = Bench::open(args.engine, &args.runs, Some(1), args.agentapi).await?;
        let drawn = bench.draw(args.seed, &catalogue).await?;
        show(&told(&drawn))?;
        show(&text(&drawn))?;
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
