//! The compatibility matrix: claims beside measurements, and under it what differs.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, Color};
use reprise_model::{ByteSize, MatrixRow, Standing, Subject};

use crate::text::plain;

/// A row's measured level in words.
#[must_use]
pub fn level(row: &MatrixRow) -> String {
    match (row.level, row.at_most) {
        (None, _) => "not measured".to_owned(),
        (Some(level), true) => format!("at most {level}"),
        (Some(level), false) => level.to_string(),
    }
}

/// On what a standing rests.
fn evidence(standing: &Standing) -> String {
    match standing {
        Standing::Resumes(Subject::RealAgent) => "resumes".to_owned(),
        Standing::Fails(Subject::RealAgent) => "does not resume".to_owned(),
        Standing::Resumes(Subject::StandIn) => "resumes (stand-in)".to_owned(),
        Standing::Fails(Subject::StandIn) => "does not resume (stand-in)".to_owned(),
        Standing::Unmeasured(_) => "not measured".to_owned(),
    }
}

/// The versions that matter to a reader: the agent's or its stand-in's, and AgentAPI's.
pub(crate) fn versions(row: &MatrixRow) -> String {
    let agent = row.agent.to_string();
    let stand_in = format!("{agent} stand-in");
    let of_agent = row
        .versions
        .get(&agent)
        .cloned()
        .or_else(|| Some(format!("stand-in {}", row.versions.get(&stand_in)?)));
    let agentapi = row
        .versions
        .get("agentapi")
        .map(|version| format!("AgentAPI {version}"));
    let told: Vec<String> = of_agent.into_iter().chain(agentapi).collect();
    told.join(", ")
}

pub(crate) fn storage(row: &MatrixRow) -> String {
    row.storage.map_or_else(String::new, |storage| {
        format!(
            "{} (+{} beside), {} a turn",
            ByteSize(storage.inside),
            ByteSize(storage.outside),
            ByteSize(storage.per_turn)
        )
    })
}

/// The matrix for people.
#[must_use]
pub fn matrix(rows: &[MatrixRow], width: Option<u16>) -> String {
    let mut table = crate::table::new(width);
    table.set_header([
        "agent",
        "claimed",
        "measured",
        "agent alone",
        "through its module",
        "module",
        "measured with",
        "storage claimed",
        "storage measured",
    ]);
    for row in rows {
        let agrees = row.level == row.claim.support && !row.at_most;
        let color = match (row.level, agrees) {
            (None, _) => Color::DarkGrey,
            (Some(_), true) => Color::Green,
            (Some(_), false) => Color::Red,
        };
        let claimed = row
            .claim
            .support
            .map_or_else(String::new, |level| level.to_string());
        let storage_claimed = row
            .claim
            .storage_mb
            .map_or_else(String::new, |mb| format!("{mb} MB"));
        table.add_row([
            Cell::new(&row.title),
            Cell::new(claimed),
            Cell::new(level(row))
                .fg(color)
                .add_attribute(Attribute::Bold),
            Cell::new(evidence(&row.native)),
            Cell::new(evidence(&row.through_module)),
            Cell::new(
                row.module
                    .as_ref()
                    .map_or_else(String::new, ToString::to_string),
            ),
            Cell::new(versions(row)),
            Cell::new(storage_claimed),
            Cell::new(storage(row)),
        ]);
    }
    let mut text = format!("{table}\n");
    let bold = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
    for row in rows {
        for difference in &row.differences {
            let _ = writeln!(
                text,
                "\n{}: claimed {bold}{}{bold:#}",
                row.title,
                plain(&difference.claimed)
            );
            let _ = writeln!(text, "  measured: {}", plain(&difference.measured));
            for seen in &difference.evidence {
                let _ = writeln!(text, "    {}", plain(seen));
            }
            let _ = writeln!(text, "  to see it: {}", difference.reproduce);
        }
    }
    let unmeasured: Vec<&MatrixRow> = rows
        .iter()
        .filter(|row| {
            [&row.native, &row.through_module]
                .iter()
                .any(|standing| matches!(standing, Standing::Unmeasured(_)))
        })
        .collect();
    if !unmeasured.is_empty() {
        text.push_str("\nNot measured:\n");
        for row in unmeasured {
            for (layer, standing) in [("native", &row.native), ("module", &row.through_module)] {
                if let Standing::Unmeasured(why) = standing {
                    let why = plain(why);
                    let first = why.lines().next().unwrap_or_default();
                    let _ = writeln!(text, "  {}, {layer}: {first}", row.title);
                }
            }
        }
    }
    text
}
