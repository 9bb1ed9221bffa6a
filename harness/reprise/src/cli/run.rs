//! `reprise run`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use reprise_model::{Cell, CellResult, EngineKind, Layer, NotMeasured, RunId, Subject};
use reprise_report::{Live, Style};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::Format;
use super::measuring::RunArgs;
use super::show::show;
use super::{Exit, Failure, places};
use crate::runner::{Limits, ModuleChoice, Run, RunOutcome, Wanted};
use crate::scenario::{AgentProfile, Catalogue, Install, Scenario, Suite};
use crate::tools::{Cache, Tools};

pub(super) fn main(args: RunArgs) -> Result<Exit, Failure> {
    let catalogue = match &args.catalogue {
        Some(dir) => Catalogue::of_dir(dir)?,
        None => Catalogue::builtin()?,
    };
    with(args, &catalogue)
}

/// As [`main`], with other profiles and scenarios.
pub(super) fn with(args: RunArgs, catalogue: &Catalogue) -> Result<Exit, Failure> {
    let wanted = wanted(&args, catalogue)?;
    check_required(&args.require, catalogue)?;
    places::runtime()?.block_on(run(args, wanted))
}

/// Every cell the user asked for, in a stable order.
fn wanted(args: &RunArgs, catalogue: &Catalogue) -> Result<Vec<Wanted>, Failure> {
    let agents: Vec<&AgentProfile> = if args.agents.is_empty() {
        catalogue.agents().collect()
    } else {
        args.agents
            .iter()
            .map(|name| catalogue.agent(name))
            .collect::<Result<_, _>>()?
    };
    let engine = args.engine.map(EngineKind::from);
    let suites = match args.suites.as_slice() {
        [] => &[Suite::Basic],
        some => some,
    };
    let scenarios: Vec<&Scenario> = if args.scenarios.is_empty() {
        catalogue
            .scenarios()
            .filter(|scenario| scenario.engine.is_none() || scenario.engine == engine)
            .filter(|scenario| suites.contains(&scenario.suite))
            .collect()
    } else {
        args.scenarios
            .iter()
            .map(|name| catalogue.scenario(name))
            .collect::<Result<_, _>>()?
    };
    let layers: Vec<Layer> = match args.layers.as_slice() {
        [] => vec![Layer::Native, Layer::Module],
        some => some.iter().map(|layer| (*layer).into()).collect(),
    };
    // Who names a module or a setting of one means the layer that has modules.
    let of_module = args.module.is_some() || !args.set.is_empty();
    let layers = if of_module && args.layers.is_empty() {
        vec![Layer::Module]
    } else {
        layers
    };
    if !args.set.is_empty() && agents.len() != 1 {
        let message = "--set needs the one agent whose module it is for: `reprise run AGENT --set NAME=VALUE`";
        return Err(Failure::message(Exit::Usage, message));
    }
    if let Some(module) = &args.module
        && agents.len() != 1
    {
        let message = format!(
            "--module {module} needs the one agent whose module it is: `reprise run AGENT --module {module}`"
        );
        return Err(Failure::message(Exit::Usage, message));
    }
    let mut wanted = Vec::new();
    for profile in agents {
        for layer in &layers {
            for scenario in &scenarios {
                if scenario.layers.contains(layer) {
                    let times = if args.repeat > 1 {
                        1..=args.repeat
                    } else {
                        0..=0
                    };
                    wanted.extend(times.map(|time| Wanted {
                        profile: profile.clone(),
                        subject: subject(args, profile, *layer),
                        layer: *layer,
                        scenario: (*scenario).clone(),
                        part: (time > 0).then(|| time.to_string()),
                    }));
                }
            }
        }
    }
    if wanted.is_empty() {
        return Err(Failure::message(
            Exit::Usage,
            "no scenario runs at the layers that were named",
        ));
    }
    Ok(wanted)
}

/// The real agent where it can be had. Where it cannot, its stand-in can still show what the module does; natively it would
/// only show itself.
fn subject(args: &RunArgs, profile: &AgentProfile, layer: Layer) -> Subject {
    match (&profile.install, layer) {
        _ if args.stand_in => Subject::StandIn,
        (Install::Vendor(_), _) if args.live => Subject::RealAgent,
        (Install::Vendor(_), Layer::Native) => Subject::RealAgent,
        _ => profile.subject(),
    }
}

/// A name in `--require` that nobody has would never be missed.
fn check_required(required: &[String], catalogue: &Catalogue) -> Result<(), Failure> {
    for name in required {
        let mut parts = name.split('/');
        let agent = parts.next().unwrap_or_default();
        if agent != "all" {
            catalogue.agent(agent)?;
        }
        match parts.next() {
            None | Some("native" | "module") => {}
            Some(layer) => {
                let message =
                    format!("--require {name}: `{layer}` is no layer; there are native and module");
                return Err(Failure::message(Exit::Usage, message));
            }
        }
        if let Some(scenario) = parts.next() {
            catalogue.scenario(scenario)?;
        }
    }
    Ok(())
}

fn requires(required: &[String], cell: &Cell) -> bool {
    let name = format!("{}/{}/{}", cell.agent, cell.layer, cell.scenario);
    required
        .iter()
        .any(|wanted| wanted == "all" || name == *wanted || name.starts_with(&format!("{wanted}/")))
}

async fn run(args: RunArgs, wanted: Vec<Wanted>) -> Result<Exit, Failure> {
    let id = RunId::draw();
    let engine = places::engine(args.engine.map(Into::into), &args.cluster, id).await?;
    let directory = directory(&args.runs, id)?;
    let run = Run {
        id,
        engine,
        tools: Tools::new(Cache::of_user(), args.agentapi.agentapi_source),
        modules: ModuleChoice::new(
            args.registry,
            args.module,
            args.set.into_iter().collect(),
            builtin_registry(&directory),
        ),
        program: places::program()?,
        directory: directory.clone(),
        // A cell mostly waits for its agent to come to rest, and a stand-in is at work for a moment only.
        jobs: jobs(args.jobs, if args.stand_in { 12 } else { 2 }),
        keep: args.keep,
        gateway_port: args.gateway_port,
        limits: Limits::of_cell(std::time::Duration::from_secs(args.timeout)),
        cancel: CancellationToken::new(),
    };
    let outcome = measure(&run, &live(), wanted).await;
    let results = reprise_report::json(&outcome.results, &outcome.not_measured, outcome.cancelled);
    std::fs::write(directory.join("results.json"), &results).map_err(|error| {
        Failure::message(
            Exit::Io,
            format!("cannot write {}/results.json: {error}", directory.display()),
        )
    })?;
    print(
        args.format,
        &outcome.results,
        &outcome.not_measured,
        outcome.cancelled,
    )?;
    let missing = outcome
        .not_measured
        .iter()
        .any(|what| requires(&args.require, &what.cell));
    Ok(Exit::of(
        outcome.results.iter().map(|result| result.judgement),
        missing,
        outcome.cancelled,
    ))
}

/// Makes the directory of a run.
pub(super) fn directory(runs: &Path, id: RunId) -> Result<PathBuf, Failure> {
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let short = id.to_string()[..8].to_owned();
    let directory = runs.join(format!("{stamp}-{short}"));
    std::fs::create_dir_all(&directory).map_err(|error| {
        let message = format!(
            "cannot make the run's directory {}: {error} (--runs names another place)",
            directory.display()
        );
        Failure::message(Exit::Io, message)
    })?;
    Ok(directory.canonicalize().unwrap_or(directory))
}

/// Where the registry that comes with reprise is unpacked for a run.
pub(super) fn builtin_registry(directory: &Path) -> PathBuf {
    directory.join("builtin-registry")
}

/// How many cells are measured at once.
pub(super) fn jobs(asked: Option<u16>, for_each_processor: usize) -> usize {
    asked.map_or_else(
        || {
            let processors = std::thread::available_parallelism();
            for_each_processor * processors.map_or(1, std::num::NonZero::get)
        },
        usize::from,
    )
}

/// Shows what happens on standard error, as a terminal or a file has it.
pub(super) fn live() -> Live {
    Live::new(if std::io::stderr().is_terminal() {
        Style::Terminal
    } else {
        Style::Lines
    })
}

/// Measures cells. A signal ends it, and what was unpacked for it goes.
pub(super) async fn measure(run: &Run, live: &Live, wanted: Vec<Wanted>) -> RunOutcome {
    let watcher = tokio::spawn(end_on_signal(run.cancel.clone()));
    let outcome = run.measure(wanted, &|event| live.show(&event)).await;
    watcher.abort();
    let _ = std::fs::remove_dir_all(builtin_registry(&run.directory));
    outcome
}

/// The first signal ends the run cleanly; a second one ends it at once.
async fn end_on_signal(cancel: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    eprintln!("ending the run and removing its workspaces; once more ends it at once");
    cancel.cancel();
    next().await;
    eprintln!("`reprise gc` removes what is left");
    std::process::exit(130);
}

/// Prints results in the format asked for.
pub(super) fn print(
    format: Format,
    results: &[CellResult],
    not_measured: &[NotMeasured],
    cancelled: bool,
) -> Result<(), Failure> {
    let text = match format {
        Format::Human => {
            // Piped output has no width; a wide one keeps a row in a line.
            let width = (!std::io::stdout().is_terminal()).then_some(140);
            reprise_report::summary(results, not_measured, width)
        }
        Format::Json => format!(
            "{}\n",
            reprise_report::json(results, not_measured, cancelled)
        ),
        Format::Github => reprise_report::markdown(results, not_measured),
        Format::Junit => reprise_report::junit(results, not_measured)
            .map_err(|error| Failure::message(Exit::Io, error))?,
    };
    show(&text)
}
