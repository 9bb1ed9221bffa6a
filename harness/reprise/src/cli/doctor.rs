//! `reprise doctor`: what each chain gives on this machine, and what cannot be measured for want of it. Nothing is fetched or
//! built unless it is asked to obtain what is missing.

use reprise_engine::Engine;
use reprise_engine::sandbox::Sandbox;
use reprise_model::{Layer, RunId};

use super::args::{DoctorArgs, EngineArg};
use super::{Exit, Failure, places};
use crate::agent;
use crate::scenario::Catalogue;
use crate::tools::{Cache, Tools};
use crate::workspace::with_causes;

pub(super) fn main(args: &DoctorArgs) -> Result<Exit, Failure> {
    places::runtime()?.block_on(doctor(args))
}

fn say(good: bool, name: &str, what: &str) {
    let mark = if good { "ok     " } else { "missing" };
    anstream::println!("  {mark}  {name}: {what}");
}

/// The cluster's version, if this user may do there what the engine does.
async fn cluster(args: &DoctorArgs) -> Result<String, String> {
    let kubernetes = places::kubernetes(&args.cluster, RunId::draw())
        .await
        .map_err(|failure| failure.report.to_string())?;
    let denied = kubernetes
        .denied()
        .await
        .map_err(|error| with_causes(&error))?;
    let namespace = kubernetes.namespace();
    if !denied.is_empty() {
        return Err(format!(
            "you may not {} in namespace {namespace} (ci/kubernetes/rbac.yaml grants it)",
            denied.join(", ")
        ));
    }
    let version = kubernetes
        .version()
        .await
        .map_err(|error| with_causes(&error))?;
    Ok(format!("{version}, namespace {namespace}"))
}

async fn doctor(args: &DoctorArgs) -> Result<Exit, Failure> {
    let progress = |what: &str| {
        if args.obtain {
            eprintln!("preparing: {what}");
        }
    };
    println!("Engines");
    let sandbox = match Sandbox::check() {
        Ok(()) => places::sandbox()?
            .version()
            .await
            .map_err(|error| error.to_string()),
        Err(missing) => Err(missing.to_string()),
    };
    let docker = match places::docker().await {
        Ok(docker) => {
            let prepared = if args.obtain {
                docker.prepare(&progress).await
            } else {
                Ok(())
            };
            match prepared {
                Ok(()) => docker.version().await.map_err(|error| with_causes(&error)),
                Err(error) => Err(with_causes(&error)),
            }
        }
        Err(missing) => Err(missing.to_string()),
    };
    let mut engines = 0;
    let mut found = vec![("sandbox", sandbox), ("docker", docker)];
    if args.engine == Some(EngineArg::Kubernetes) {
        found.push(("kubernetes", cluster(args).await));
    }
    for (name, outcome) in found {
        engines += usize::from(outcome.is_ok());
        match outcome {
            Ok(version) => say(true, name, &version),
            Err(why) => say(false, name, &why),
        }
    }
    let tools = Tools::new(Cache::of_user(), args.agentapi.agentapi_source.clone());
    let looking = if args.obtain {
        tools.clone()
    } else {
        tools.only_looking()
    };
    // What would help, where nothing was tried yet.
    let would = |what: &str| {
        if args.obtain {
            String::new()
        } else {
            format!("; {what}")
        }
    };
    println!("Tools (kept in {})", tools.cache().root().display());
    match looking.terraform(&progress).await {
        Ok(tool) => say(
            true,
            "terraform",
            &format!("{}, {}", tool.version, tool.from),
        ),
        Err(tried) => say(
            false,
            "terraform",
            &format!(
                "{tried}{}",
                would("`reprise run` tries OpenTofu's release, then a build with Go")
            ),
        ),
    }
    match looking.provider(&progress).await {
        Ok(provider) => say(true, "coder provider", &provider.describe()),
        Err(tried) => say(
            false,
            "coder provider",
            &format!("{tried}{}", would("`reprise run` builds it with Go")),
        ),
    }
    let catalogue = Catalogue::builtin()?;
    println!("Cells");
    let program = places::program()?;
    for profile in catalogue.agents() {
        for layer in [Layer::Native, Layer::Module] {
            let name = format!("{}/{layer}", profile.name);
            match agent::obtain(
                profile,
                profile.subject(),
                layer,
                &looking,
                &program,
                &progress,
            )
            .await
            {
                Ok(installed) => {
                    let versions: Vec<String> = installed
                        .versions
                        .iter()
                        .map(|(name, version)| format!("{name} {version}"))
                        .collect();
                    say(true, &name, &versions.join(", "));
                }
                Err(why) => say(
                    false,
                    &name,
                    &format!("{why}{}", would("`reprise run` tries to obtain it")),
                ),
            }
        }
    }
    Ok(if engines > 0 {
        Exit::Pass
    } else {
        Exit::Unavailable
    })
}
