//! The verdict table, and beneath it why each cell that is not a pass is none.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell as TableCell, Color, Table};
use reprise_model::{CellResult, Judgement, Layer, NotMeasured};

use crate::text::{plain, seconds};

fn color(judgement: Judgement) -> (AnsiColor, Color) {
    match judgement {
        Judgement::Pass => (AnsiColor::Green, Color::Green),
        Judgement::Fail => (AnsiColor::Red, Color::Red),
        Judgement::Inconclusive => (AnsiColor::Yellow, Color::Yellow),
        Judgement::NotApplicable => (AnsiColor::BrightBlack, Color::DarkGrey),
    }
}

fn painted(text: &str, judgement: Judgement) -> String {
    let style = Style::new()
        .fg_color(Some(color(judgement).0.into()))
        .bold();
    format!("{style}{text}{style:#}")
}

/// Everything a person wants to know of a run. Holds colours; whoever prints it strips them where they are not wanted.
#[must_use]
pub fn summary(results: &[CellResult], not_measured: &[NotMeasured], width: Option<u16>) -> String {
    let mut text = String::new();
    if !results.is_empty() {
        let _ = writeln!(text, "{}\n", table(results, width));
    }
    for result in results {
        if result.judgement > Judgement::Pass || result.trouble.is_some() {
            explain(&mut text, result);
        }
    }
    if !not_measured.is_empty() {
        text.push_str("Not measured:\n");
        for (reason, cells) in by_reason(not_measured) {
            let _ = writeln!(text, "  {}\n    {}", cells.join(", "), plain(reason).trim());
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", count(results, not_measured));
    text
}

fn table(results: &[CellResult], width: Option<u16>) -> Table {
    let mut table = crate::table::new(width);
    table.set_header([
        "agent",
        "layer",
        "scenario",
        "engine",
        "measured with",
        "verdict",
        "time",
    ]);
    for result in results {
        let module = result
            .module
            .as_ref()
            .filter(|_| result.cell.layer == Layer::Module)
            .map(|module| match &module.version {
                Some(_) => format!(", {module}"),
                None => format!(", {module} (working tree)"),
            })
            .unwrap_or_default();
        table.add_row([
            TableCell::new(&result.cell.agent),
            TableCell::new(result.cell.layer),
            TableCell::new(&result.cell.scenario),
            TableCell::new(result.cell.engine),
            TableCell::new(format!("{}{module}", result.subject)),
            TableCell::new(result.judgement)
                .fg(color(result.judgement).1)
                .add_attribute(Attribute::Bold),
            TableCell::new(seconds(result.millis)),
        ]);
    }
    table
}

fn explain(text: &mut String, result: &CellResult) {
    let _ = writeln!(
        text,
        "{} {}",
        painted(&result.judgement.to_string(), result.judgement),
        result.cell
    );
    let versions: Vec<String> = result
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {}", plain(version)))
        .collect();
    if !versions.is_empty() {
        let _ = writeln!(text, "  with {}", versions.join(", "));
    }
    for verdict in &result.verdicts {
        let _ = writeln!(
            text,
            "  {} {}: {}",
            painted(&verdict.judgement.to_string(), verdict.judgement),
            verdict.check,
            short(&plain(&verdict.summary), verdict.judgement)
        );
        if verdict.judgement != Judgement::Fail {
            continue;
        }
        for piece in &verdict.evidence {
            let at = piece
                .at
                .map(|at| format!(" at {:.1} s", at.seconds()))
                .unwrap_or_default();
            let _ = writeln!(text, "      {}{at}", piece.source);
            let _ = writeln!(text, "        saw: {}", plain(&piece.saw));
            if let Some(expected) = &piece.expected {
                let _ = writeln!(text, "        right: {}", plain(expected));
            }
        }
    }
    if let Some(trouble) = &result.trouble {
        let indented = plain(trouble).replace('\n', "\n    ");
        let _ = writeln!(text, "  the run ended early: {indented}");
    }
    for log in &result.logs {
        let _ = writeln!(text, "  logs/{} ends:", plain(&log.name));
        for line in &log.lines {
            let line: String = plain(line).chars().take(200).collect();
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = writeln!(text, "  all of it: {}\n", result.directory);
}

/// What kept a check from judging is the same for all of a cell's checks and stands whole below them.
fn short(summary: &str, judgement: Judgement) -> &str {
    match judgement {
        Judgement::Inconclusive => summary.lines().next().unwrap_or_default(),
        _ => summary,
    }
}

/// Cells that share a reason are told together.
fn by_reason(not_measured: &[NotMeasured]) -> Vec<(&str, Vec<String>)> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for missing in not_measured {
        let cell = missing.cell.to_string();
        match groups
            .iter_mut()
            .find(|(reason, _)| *reason == missing.reason)
        {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((&missing.reason, vec![cell])),
        }
    }
    groups
}

fn count(results: &[CellResult], not_measured: &[NotMeasured]) -> String {
    let of = |judgement| {
        results
            .iter()
            .filter(|result| result.judgement == judgement)
            .count()
    };
    let mut parts = vec![format!("{} cells measured", results.len())];
    for judgement in [
        Judgement::Pass,
        Judgement::Fail,
        Judgement::Inconclusive,
        Judgement::NotApplicable,
    ] {
        let several = of(judgement);
        if several > 0 {
            parts.push(painted(&format!("{several} {judgement}"), judgement));
        }
    }
    if !not_measured.is_empty() {
        parts.push(format!("{} not measured", not_measured.len()));
    }
    parts.join(", ")
}
