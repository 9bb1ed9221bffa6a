//! `reprise images`: ready-to-run images of agents, and the pins of what they are made of.

use std::fs;
use std::path::Path;

use super::args::ImagesCommand;
use super::{Exit, Failure, places};
use crate::agent;
use crate::scenario::{AgentProfile, Catalogue, Install};
use crate::tools::{AgentsLock, Cache, Tools, newest};
use crate::workspace::with_causes;
use reprise_engine::{Engine, EngineError, images as image_names};
use reprise_model::{Layer, Subject};

pub(super) fn main(command: &ImagesCommand) -> Result<Exit, Failure> {
    match command {
        ImagesCommand::Build {
            cluster: true,
            image_registry,
            ..
        } => places::runtime()?.block_on(build_for_cluster(image_registry.as_deref())),
        ImagesCommand::Build { agents, .. } => places::runtime()?.block_on(build(agents)),
        ImagesCommand::Update { packages, lock } => {
            places::runtime()?.block_on(update(packages, lock))
        }
    }
}

async fn build(names: &[String]) -> Result<Exit, Failure> {
    let catalogue = Catalogue::builtin()?;
    let profiles: Vec<&AgentProfile> = if names.is_empty() {
        catalogue
            .agents()
            .filter(|profile| matches!(profile.install, Install::Packages(_)))
            .collect()
    } else {
        names
            .iter()
            .map(|name| catalogue.agent(name))
            .collect::<Result<_, _>>()?
    };
    let docker = places::docker()
        .await
        .map_err(|missing| Failure::message(Exit::Unavailable, missing))?;
    let progress = |what: &str| eprintln!("preparing: {what}");
    docker
        .prepare(&progress)
        .await
        .map_err(|error| Failure::message(Exit::Unavailable, with_causes(&error)))?;
    let tools = Tools::new(Cache::of_user(), None);
    let program = places::program()?;
    for profile in profiles {
        let installed = agent::obtain(
            profile,
            Subject::RealAgent,
            Layer::Native,
            &tools,
            &program,
            &progress,
        )
        .await
        .map_err(|why| Failure::message(Exit::Unavailable, why))?;
        progress(&format!("making the image of {}", profile.title));
        let version = installed
            .versions
            .get(profile.name.as_str())
            .map_or("latest", String::as_str);
        let tag = format!("reprise/{}:{version}", profile.name);
        let scripts: Vec<(String, String)> = installed
            .commands
            .iter()
            .map(|(name, command)| (name.clone(), agent::script(command)))
            .collect();
        docker
            .layer(&tag, &installed.directories, &scripts)
            .await
            .map_err(|error| Failure::message(Exit::Io, with_causes(&error)))?;
        println!("{tag}");
    }
    Ok(Exit::Pass)
}

/// Makes what a cluster's pods run, and prints its names.
async fn build_for_cluster(registry: Option<&str>) -> Result<Exit, Failure> {
    let failed = |error: EngineError| Failure::message(Exit::Io, with_causes(&error));
    let docker = places::docker()
        .await
        .map_err(|missing| Failure::message(Exit::Unavailable, missing))?;
    docker
        .prepare(&|what| eprintln!("preparing: {what}"))
        .await
        .map_err(failed)?;
    let program = places::program()?;
    let of_program = image_names::program_image(&program).map_err(failed)?;
    docker
        .program_image(&of_program, &program)
        .await
        .map_err(failed)?;
    for image in [image_names::workspace_image(), of_program] {
        let name = image_names::in_registry(registry, &image);
        if registry.is_some() {
            docker.tag(&image, &name).await.map_err(failed)?;
        }
        println!("{name}");
    }
    if registry.is_some() {
        eprintln!("push them with `docker push`, and give --image-registry to `reprise run`");
    }
    Ok(Exit::Pass)
}

/// Moves pins. Only what moved is told.
async fn update(packages: &[String], path: &Path) -> Result<Exit, Failure> {
    let unreadable = |error: std::io::Error| {
        let message = format!("{}: {error} (--lock names another place)", path.display());
        Failure::message(Exit::Io, message)
    };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let mut lock: AgentsLock = serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} is no lock file: {error}", path.display());
        Failure::message(Exit::BadFile, message)
    })?;
    for name in packages {
        if !lock.npm.contains_key(name) {
            let known: Vec<&str> = lock.npm.keys().map(String::as_str).collect();
            let message = format!(
                "{} pins no npm package {name}; there are: {}",
                path.display(),
                known.join(", ")
            );
            return Err(Failure::message(Exit::Usage, message));
        }
    }
    for (name, pin) in &mut lock.npm {
        if !packages.is_empty() && !packages.contains(name) {
            continue;
        }
        let found = newest(name, &pin.version)
            .await
            .map_err(|why| Failure::message(Exit::Unavailable, format!("{name}: {why}")))?;
        if found.version != pin.version {
            println!("{name}: {} -> {}", pin.version, found.version);
            let mut earlier = std::mem::replace(pin, found);
            // One step back is enough to move up from.
            earlier.earlier = None;
            pin.earlier = Some(Box::new(earlier));
        }
    }
    let mut text = serde_json::to_string_pretty(&lock).expect("a lock file is JSON");
    text.push('\n');
    fs::write(path, text).map_err(unreadable)?;
    Ok(Exit::Pass)
}
