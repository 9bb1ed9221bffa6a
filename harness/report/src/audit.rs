//! Audits for people: modules and their places, templates and their volumes.

use std::fmt::Write;

use comfy_table::{Cell, Color};
use reprise_model::{Audit, ModuleAudit, Need, VolumeAudit};

use crate::text::plain;

fn color(need: Need) -> Color {
    match need {
        Need::Ephemeral => Color::Green,
        Need::Persistence => Color::Yellow,
        Need::Bug => Color::Red,
    }
}

/// What keeps data, and what is wrong, of each module.
#[must_use]
pub fn audit(audit: &Audit, width: Option<u16>) -> String {
    let mut table = crate::table::new(width);
    table.set_header(["module", "scripts", "finding", "keeps", "bugs"]);
    for module in &audit.modules {
        let need = module.need();
        table.add_row([
            Cell::new(&module.module),
            Cell::new(module.scripts),
            Cell::new(need).fg(color(need)),
            Cell::new(paths(module, Need::Persistence)),
            Cell::new(paths(module, Need::Bug)),
        ]);
    }
    let mut text = format!("{table}\n");
    for module in &audit.modules {
        let bugs: Vec<_> = module
            .findings
            .iter()
            .filter(|finding| finding.need == Need::Bug)
            .collect();
        if bugs.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}", module.module);
        for bug in bugs {
            let place = match bug.line {
                Some(line) => format!("{}:{line}", bug.file),
                None => bug.file.clone(),
            };
            let _ = writeln!(
                text,
                "  {}: {} {}",
                plain(&place),
                plain(&bug.path),
                bug.what
            );
        }
    }
    if !audit.collisions.is_empty() {
        let _ = writeln!(text, "\nnames in /tmp that several modules write:");
    }
    for collision in &audit.collisions {
        let modules: Vec<String> = collision.modules.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  {}: {}", plain(&collision.path), modules.join(", "));
    }
    for unread in &audit.unread {
        let _ = writeln!(text, "not read: {}", plain(unread));
    }
    let count = |need| {
        audit
            .modules
            .iter()
            .filter(|module| module.need() == need)
            .count()
    };
    let _ = writeln!(
        text,
        "\n{} modules: {} with a bug, {} need persistence, {} are fine with ephemeral storage",
        audit.modules.len(),
        count(Need::Bug),
        count(Need::Persistence),
        count(Need::Ephemeral)
    );
    text
}

fn paths(module: &ModuleAudit, need: Need) -> String {
    let mut paths: Vec<String> = module
        .findings
        .iter()
        .filter(|finding| finding.need == need)
        .map(|finding| plain(&finding.path))
        .collect();
    paths.dedup();
    paths.join(", ")
}

/// What becomes of a template's volumes.
#[must_use]
pub fn volumes(volumes: &[VolumeAudit], width: Option<u16>) -> String {
    let mut table = crate::table::new(width);
    let mut header = vec!["what happens".to_owned()];
    header.extend(volumes.iter().map(|volume| volume.address.clone()));
    table.set_header(header);
    let events = volumes.first().map(|volume| volume.events.as_slice());
    for (place, (event, _)) in events.unwrap_or_default().iter().enumerate() {
        let mut row = vec![Cell::new(event)];
        row.extend(volumes.iter().map(|volume| {
            let (_, actions) = &volume.events[place];
            let actions = actions.join(", ");
            let lost = actions.contains("delete") || actions == "shared";
            let color = if lost { Color::Red } else { Color::Green };
            Cell::new(actions).fg(color)
        }));
        table.add_row(row);
    }
    let mut text = format!("{table}\n");
    for volume in volumes {
        let lost: Vec<&str> = volume.lost_by().collect();
        let ignores = if volume.ignores_changes {
            "ignores changes of the template"
        } else {
            "does not ignore changes of the template (`lifecycle { ignore_changes = all }` is missing)"
        };
        let fate = match (lost.as_slice(), volume.is_shared()) {
            ([], false) => "survives all of it".to_owned(),
            ([], true) => {
                "is shared with another workspace: its name must hold `coder_workspace.me.id`"
                    .to_owned()
            }
            (lost, _) => format!("is lost by: {}", lost.join(", ")),
        };
        let _ = writeln!(text, "{} {fate}; it {ignores}", plain(&volume.address));
    }
    text
}
