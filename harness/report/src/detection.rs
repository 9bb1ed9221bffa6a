//! The detection matrix: faults against the checks that notice them.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::{Attribute, Cell, CellAlignment, Color};
use reprise_model::{CheckName, Detection, Verification};

use crate::text::plain;

/// A verification for people.
#[must_use]
pub fn verification(verification: &Verification, width: Option<u16>) -> String {
    let mut text = String::new();
    if !verification.faults.is_empty() {
        write_matrix(&mut text, &verification.faults, width);
    }
    for detection in verification
        .faults
        .iter()
        .chain(&verification.alarms)
        .filter(|detection| !detection.is_right())
    {
        write_wrong(&mut text, detection);
    }
    for missing in &verification.not_measured {
        let _ = writeln!(text, "not measured: {}", plain(missing));
    }
    let caught = verification.faults.iter().filter(|fault| fault.is_right());
    let _ = writeln!(
        text,
        "{} of {} faults noticed as they must be; {} healthy cells, {} of them with an alarm",
        caught.count(),
        verification.faults.len(),
        verification.healthy,
        verification.alarms.len()
    );
    text
}

fn write_matrix(text: &mut String, faults: &[Detection], width: Option<u16>) {
    let checks: BTreeSet<&CheckName> = faults
        .iter()
        .flat_map(|fault| fault.caught_by.iter().chain(&fault.fired))
        .collect();
    let _ = writeln!(text, "checks:");
    for (place, check) in checks.iter().enumerate() {
        let _ = writeln!(text, "  {:>2} {check}", place + 1);
    }
    let mut table = crate::table::new(width);
    let mut header = vec![
        Cell::new("fault"),
        Cell::new("layer"),
        Cell::new("scenario"),
    ];
    header.extend((1..=checks.len()).map(Cell::new));
    header.push(Cell::new(""));
    table.set_header(header);
    for fault in faults {
        let mut row = vec![
            Cell::new(&fault.fault),
            Cell::new(fault.cell.layer),
            Cell::new(&fault.cell.scenario),
        ];
        row.extend(checks.iter().map(|check| {
            let must = fault.caught_by.contains(*check);
            let did = fault.fired.contains(*check);
            let (sign, color) = match (must, did) {
                (true, true) => ("●", Color::Green),
                (true, false) => ("○", Color::Red),
                (false, true) => ("✗", Color::Red),
                (false, false) => ("", Color::Reset),
            };
            Cell::new(sign)
                .fg(color)
                .set_alignment(CellAlignment::Center)
        }));
        row.push(match fault.is_right() {
            true if fault.caught_by.is_empty() => Cell::new("no fault"),
            true => Cell::new("noticed"),
            false => Cell::new("WRONG")
                .fg(Color::Red)
                .add_attribute(Attribute::Bold),
        });
        table.add_row(row);
    }
    let _ = writeln!(
        text,
        "● noticed as it must be  ○ not noticed  ✗ an alarm that is none of its own\n{table}"
    );
}

fn write_wrong(text: &mut String, detection: &Detection) {
    let names = |checks: &BTreeSet<CheckName>| match checks.len() {
        0 => "no check".to_owned(),
        _ => checks
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let _ = writeln!(
        text,
        "\nWRONG {} in {}: {}",
        detection.fault, detection.cell, detection.is
    );
    match &detection.trouble {
        Some(trouble) => {
            let _ = writeln!(text, "  it could not be judged: {}", plain(trouble));
        }
        None => {
            let _ = writeln!(text, "  must fail: {}", names(&detection.caught_by));
            let _ = writeln!(text, "  did fail: {}", names(&detection.fired));
        }
    }
    let _ = writeln!(text, "  all of it: {}", detection.directory);
}
