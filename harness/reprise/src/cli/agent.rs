//! `reprise agent check`: a new profile, read and tried.

use std::path::Path;

use super::args::{AgentCheckArgs, AgentCommand, Cli, Command};
use super::{Exit, Failure, run};
use crate::scenario::{AgentProfile, Catalogue};
use clap::Parser;
use reprise_model::EngineKind;

pub(super) fn main(command: &AgentCommand) -> Result<Exit, Failure> {
    match command {
        AgentCommand::Check(args) => check(args),
    }
}

fn check(args: &AgentCheckArgs) -> Result<Exit, Failure> {
    let profile = read(&args.file)?;
    println!(
        "{}: {} ({}), {}",
        args.file.display(),
        profile.title,
        profile.subject(),
        match (&profile.native, &profile.module) {
            (Some(_), Some(module)) => format!("natively and by {}", module.source),
            (Some(_), None) => "natively".to_owned(),
            (None, Some(module)) => format!("by {}", module.source),
            (None, None) => "not at all".to_owned(),
        }
    );
    if args.read_only {
        return Ok(Exit::Pass);
    }
    let name = profile.name.to_string();
    // A profile that nothing could be measured of has not been tried.
    let mut line: Vec<&str> = vec!["reprise", "run", name.as_str()];
    line.extend(["--scenario", "warm_restart", "--require", "all"]);
    for (layer, has) in [
        ("native", profile.native.is_some()),
        ("module", profile.module.is_some()),
    ] {
        if has {
            line.extend(["--layer", layer]);
        }
    }
    let engine = args
        .engine
        .map(|engine| EngineKind::from(engine).to_string());
    if let Some(engine) = &engine {
        line.extend(["--engine", engine]);
    }
    let mut catalogue = Catalogue::builtin()?;
    catalogue.add(profile);
    let Ok(Cli {
        command: Command::Run(run_args),
    }) = Cli::try_parse_from(line)
    else {
        unreachable!("the line names a command and options that there are");
    };
    run::with(*run_args, &catalogue)
}

/// Reads a profile; what is wrong with it is shown in the file.
fn read(file: &Path) -> Result<AgentProfile, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::message(Exit::Io, format!("cannot read {}: {error}", file.display()))
    })?;
    AgentProfile::parse(&file.display().to_string(), &text)
        .map_err(|error| Failure::new(Exit::BadFile, error))
}
