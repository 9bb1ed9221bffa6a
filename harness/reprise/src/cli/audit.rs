//! `reprise audit`.

use std::path::Path;

use super::args::{AuditArgs, AuditCommand, Readers};
use super::{Exit, Failure, places, show};
use crate::audit;
use crate::module::{REGISTRY_REPOSITORY, Source};
use crate::tools::{Cache, Tools};

pub(super) fn main(args: AuditArgs) -> Result<Exit, Failure> {
    let runtime = places::runtime()?;
    match args.command {
        Some(AuditCommand::Template {
            dir,
            volumes,
            format,
        }) => runtime.block_on(template(&dir, &volumes, format)),
        None => runtime.block_on(modules(args)),
    }
}

fn say(what: &str) {
    eprintln!("{what}");
}

/// How wide a piped table is.
const PIPED: u16 = 160;

async fn modules(args: AuditArgs) -> Result<Exit, Failure> {
    let place = args.registry.as_deref().unwrap_or(REGISTRY_REPOSITORY);
    let source = Source::open(place, &Cache::of_user(), &say)
        .await
        .map_err(|error| Failure::message(Exit::Unavailable, error))?;
    let unread = |error| Failure::message(Exit::Io, error);
    let all = audit::modules_of(&source).await.map_err(unread)?;
    let wanted = if args.modules.is_empty() {
        all
    } else {
        // A module named without a version is the tree's, or the newest release.
        args.modules
            .into_iter()
            .map(|module| {
                all.iter()
                    .find(|known| {
                        module.version.is_none()
                            && known.namespace == module.namespace
                            && known.name == module.name
                    })
                    .cloned()
                    .unwrap_or(module)
            })
            .collect()
    };
    let mut found = audit::audit(&source, &wanted).await;
    if let Some(dir) = &args.seen {
        audit::add_seen(&mut found, dir).map_err(|error| Failure::message(Exit::Io, error))?;
    }
    show::found(&found, args.format, reprise_report::audit, PIPED)?;
    Ok(if audit::has_bugs(&found) {
        Exit::Fail
    } else if found.unread.is_empty() {
        Exit::Pass
    } else {
        Exit::Inconclusive
    })
}

async fn template(dir: &Path, named: &[String], format: Readers) -> Result<Exit, Failure> {
    if !dir.is_dir() {
        let message = format!("{} is no directory with a template in it", dir.display());
        return Err(Failure::message(Exit::BadFile, message));
    }
    let tools = Tools::new(Cache::of_user(), None);
    let missing = |tried| Failure::message(Exit::Unavailable, tried);
    let terraform = tools.terraform(&say).await.map_err(missing)?;
    let provider = tools.provider(&say).await.map_err(missing)?;
    let work = tempfile::tempdir().map_err(|error| Failure::message(Exit::Io, error))?;
    let volumes = audit::audit_template(dir, named, &terraform.path, &provider, work.path())
        .await
        .map_err(|error| Failure::message(Exit::BadFile, error))?;
    show::found(volumes.as_slice(), format, reprise_report::volumes, PIPED)?;
    let lost = volumes
        .iter()
        .any(|volume| volume.lost_by().next().is_some() || volume.is_shared());
    Ok(if lost { Exit::Fail } else { Exit::Pass })
}
