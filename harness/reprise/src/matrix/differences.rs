//! What is claimed otherwise than it was measured, with the evidence and a command that shows it again.

use reprise_model::{
    ByteSize, CellResult, Difference, Judgement, Layer, Level, MatrixRow, Subject, Verdict,
};

use super::{CONTINUES, LEVEL_SCENARIO, NOT_RESENT, STORAGE_CHECK, Seen};
use crate::scenario::{AgentProfile, Install};

/// Everything of a row that is claimed otherwise.
pub(super) fn of(profile: &AgentProfile, row: &MatrixRow, seen: &Seen<'_>) -> Vec<Difference> {
    let mut all = Vec::new();
    all.extend(support(profile, row, seen));
    all.extend(paths(profile, seen));
    all.extend(storage(profile, seen));
    for note in &row.notes {
        if note.holds == Some(false) {
            all.push(Difference {
                claimed: note.text.clone(),
                measured: note.because.clone(),
                evidence: Vec::new(),
                reproduce: seen
                    .cell(&profile.name, Layer::Module, LEVEL_SCENARIO)
                    .map(|result| command(profile, result))
                    .unwrap_or_default(),
            });
        }
    }
    all
}

fn support(profile: &AgentProfile, row: &MatrixRow, seen: &Seen<'_>) -> Option<Difference> {
    let claimed = profile.claim.support?;
    let measured = row.level?;
    if claimed == measured && !row.at_most {
        return None;
    }
    let result = seen.cell(&profile.name, Layer::Module, LEVEL_SCENARIO)?;
    let at_most = if row.at_most { "at most " } else { "" };
    let checks: &[&str] = if measured == Level::Full {
        &[]
    } else {
        &[CONTINUES, NOT_RESENT]
    };
    Some(Difference {
        claimed: format!("support: {claimed}"),
        measured: format!("{at_most}{measured}: {}", row.because),
        evidence: result
            .verdicts
            .iter()
            .filter(|verdict| checks.contains(&verdict.check.as_str()))
            .filter(|verdict| verdict.judgement == Judgement::Fail)
            .flat_map(|verdict| told(result, verdict))
            .collect(),
        reproduce: command(profile, result),
    })
}

/// What survives where only the claimed paths do; told where the session survives in a whole home.
fn paths(profile: &AgentProfile, seen: &Seen<'_>) -> Option<Difference> {
    [Layer::Native, Layer::Module]
        .into_iter()
        .find_map(|layer| {
            let whole = seen
                .verdict(&profile.name, layer, LEVEL_SCENARIO, CONTINUES)?
                .1;
            let (result, part) = seen.verdict(&profile.name, layer, "claimed_paths", CONTINUES)?;
            if whole.judgement != Judgement::Pass || part.judgement != Judgement::Fail {
                return None;
            }
            Some(Difference {
                claimed: format!("session data paths: {}", profile.claim.paths.join(", ")),
                measured: "with these paths alone the session is lost".to_owned(),
                evidence: told(result, part),
                reproduce: command(profile, result),
            })
        })
}

fn storage(profile: &AgentProfile, seen: &Seen<'_>) -> Option<Difference> {
    let (result, verdict) = seen.verdict(
        &profile.name,
        Layer::Native,
        "storage_growth",
        STORAGE_CHECK,
    )?;
    let outside = verdict.figures.get("outside_bytes").copied().unwrap_or(0);
    let inside = verdict.figures.get("inside_bytes").copied().unwrap_or(0);
    let fails = verdict.judgement == Judgement::Fail;
    // Caches and logs beside the claimed paths are worth a word once they are as large as what is in them.
    if !fails && outside <= inside.max(1_000_000) {
        return None;
    }
    let claimed = profile.claim.storage_mb.unwrap_or_default();
    Some(Difference {
        claimed: format!("{claimed} MB in {}", profile.claim.paths.join(", ")),
        measured: format!(
            "{} in them and {} beside them",
            ByteSize(inside),
            ByteSize(outside)
        ),
        evidence: told(result, verdict),
        reproduce: command(profile, result),
    })
}

fn told(result: &CellResult, verdict: &Verdict) -> Vec<String> {
    let mut told = vec![format!("{}: {}", result.cell, verdict.summary)];
    told.extend(verdict.evidence.iter().map(|piece| {
        let saw: Vec<&str> = piece.saw.split_whitespace().collect();
        format!("{}: {}", piece.source, saw.join(" "))
    }));
    told
}

/// The command that measures a cell again.
fn command(profile: &AgentProfile, result: &CellResult) -> String {
    let cell = &result.cell;
    let mut command = format!(
        "reprise run {} --engine {} --layer {} --scenario {}",
        cell.agent, cell.engine, cell.layer, cell.scenario
    );
    if let (Layer::Module, Some(module)) = (cell.layer, &result.module) {
        command.push_str(&format!(" --module {module}"));
    }
    for (name, value) in &result.settings {
        command.push_str(&format!(" --set {name}={value}"));
    }
    if result.subject == Subject::StandIn && !matches!(profile.install, Install::Builtin) {
        command.push_str(" --stand-in");
    }
    command
}
