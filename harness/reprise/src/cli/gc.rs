//! `reprise gc`: removes what runs left that did not end by themselves.

use std::path::Path;

use std::sync::Arc;

use reprise_engine::{Engine, Maker, this_host};

use reprise_model::RunId;

use super::args::GcArgs;
use super::{Exit, Failure, places};
use crate::workspace::with_causes;

pub(super) fn main(args: &GcArgs) -> Result<Exit, Failure> {
    places::runtime()?.block_on(collect(args))
}

/// Whether the process that made an object still runs. A number that was given away since belongs to another program, and of
/// another machine's processes nothing is known here.
fn maker_lives(maker: &Maker) -> bool {
    if !maker.host.is_empty() && maker.host != this_host() {
        return true;
    }
    let proc = Path::new("/proc").join(maker.pid.to_string());
    let is_this_program = std::fs::read_link(proc.join("exe"))
        .ok()
        .and_then(|exe| Some(exe.file_name()?.to_string_lossy().starts_with("reprise")))
        .unwrap_or(false);
    maker.pid != std::process::id() && is_this_program
}

async fn collect(args: &GcArgs) -> Result<Exit, Failure> {
    let engines: Vec<Arc<dyn Engine>> = match args.engine {
        Some(engine) => {
            vec![places::engine(Some(engine.into()), &args.cluster, RunId::draw()).await?]
        }
        None => {
            let mut engines: Vec<Arc<dyn Engine>> = vec![Arc::new(places::sandbox()?)];
            match places::docker().await {
                Ok(docker) => engines.push(Arc::new(docker)),
                Err(missing) => eprintln!("docker is not looked at: {missing}"),
            }
            engines
        }
    };
    let (mut removed, mut kept, mut failed) = (0, 0, 0);
    for engine in engines {
        let leftovers = engine.leftovers().await.map_err(|error| {
            Failure::message(
                Exit::Io,
                format!("{}: {}", engine.kind(), with_causes(&error)),
            )
        })?;
        for leftover in leftovers {
            let name = format!("{} {} {}", engine.kind(), leftover.kind, leftover.name);
            if !args.all && leftover.maker.as_ref().is_some_and(maker_lives) {
                kept += 1;
                println!("in use: {name}");
            } else if args.dry_run {
                println!("would be removed: {name}");
            } else {
                match engine.remove(&leftover).await {
                    Ok(()) => {
                        removed += 1;
                        println!("removed: {name}");
                    }
                    Err(error) => {
                        failed += 1;
                        println!("not removed: {name}: {}", with_causes(&error));
                    }
                }
            }
        }
    }
    println!("{removed} removed, {kept} in use, {failed} not removed");
    Ok(if failed == 0 { Exit::Pass } else { Exit::Io })
}
