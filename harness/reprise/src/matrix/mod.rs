//! Claims against measurements: one row for each agent of the compatibility page.

mod differences;
mod drift;
mod level;
mod seen;

use reprise_model::{
    EngineKind, Judgement, Layer, MatrixRow, NoteFinding, Results, Standing, Storage,
};

use crate::scenario::{AgentProfile, Catalogue, Note, ShownBy};

pub use drift::{Accepted, Baseline, Moved, baseline, drift};
pub use seen::Seen;

/// The scenario whose verdicts make a level: the restart that every workspace goes through.
pub(crate) const LEVEL_SCENARIO: &str = "warm_restart";

/// The checks that make a level.
pub(crate) const STORAGE_CHECK: &str = "storage_as_claimed";
pub(crate) const CONTINUES: &str = "session_continues";
pub(crate) const NOT_RESENT: &str = "prompt_not_resent";

/// The rows of every agent that something is claimed of.
#[must_use]
pub fn rows(catalogue: &Catalogue, results: &[Results]) -> Vec<MatrixRow> {
    let seen = Seen::of(results);
    catalogue
        .agents()
        .filter(|profile| profile.claim.support.is_some())
        .map(|profile| row(profile, &seen))
        .collect()
}

fn row(profile: &AgentProfile, seen: &Seen<'_>) -> MatrixRow {
    let native = level::standing(seen, profile, Layer::Native);
    let through_module = level::standing(seen, profile, Layer::Module);
    let measured = level::level(seen, profile, &native, &through_module);
    let module_cell = seen.cell(&profile.name, Layer::Module, LEVEL_SCENARIO);
    let native_cell = seen.cell(&profile.name, Layer::Native, LEVEL_SCENARIO);
    let module = module_cell
        .and_then(|result| result.module.clone())
        .or_else(|| profile.module.as_ref().map(|module| module.source.clone()));
    let mut versions = std::collections::BTreeMap::new();
    for result in [native_cell, module_cell].into_iter().flatten() {
        versions.extend(result.versions.clone());
    }
    let mut engines: Vec<EngineKind> = seen.engines(&profile.name);
    engines.dedup();
    let mut row = MatrixRow {
        agent: profile.name.clone(),
        title: profile.title.clone(),
        module,
        claim: profile.claim.clone(),
        level: measured.level,
        at_most: measured.at_most,
        because: measured.because,
        native,
        through_module,
        versions,
        engines,
        storage: storage(profile, seen),
        notes: profile
            .notes
            .iter()
            .map(|note| finding(profile, note, seen))
            .collect(),
        differences: Vec::new(),
    };
    row.differences = differences::of(profile, &row, seen);
    row
}

fn storage(profile: &AgentProfile, seen: &Seen<'_>) -> Option<Storage> {
    let result = seen.cell(&profile.name, Layer::Native, "storage_growth")?;
    let verdict = result
        .verdicts
        .iter()
        .find(|verdict| verdict.check.as_str() == STORAGE_CHECK)?;
    let figure = |name: &str| verdict.figures.get(name).copied();
    Some(Storage {
        inside: figure("inside_bytes")?,
        outside: figure("outside_bytes")?,
        per_turn: figure("per_turn_bytes")?,
        per_restart: figure("per_restart_bytes")?,
    })
}

/// Whether a note was seen to be true.
fn finding(profile: &AgentProfile, note: &Note, seen: &Seen<'_>) -> NoteFinding {
    let (holds, because) = match &note.shown_by {
        ShownBy::Unmeasured(why) => (None, format!("not measured: {why}")),
        ShownBy::Grows(scenario) => {
            let verdict = seen.verdict(
                &profile.name,
                Layer::Native,
                scenario.as_str(),
                STORAGE_CHECK,
            );
            match verdict.map(|(_, verdict)| (verdict, verdict.figures.get("per_turn_bytes"))) {
                Some((verdict, Some(per_turn))) => (
                    Some(*per_turn > 0),
                    format!("native/{scenario}: {}", verdict.summary),
                ),
                _ => (None, format!("native/{scenario} was not measured")),
            }
        }
        ShownBy::Variable(name) => match seen.module_variables(&profile.name) {
            None => (None, "the module was not rendered".to_owned()),
            Some((module, variables)) if variables.contains(name) => {
                (Some(true), format!("{module} has the variable `{name}`"))
            }
            Some((module, _)) => (Some(false), format!("{module} has no variable `{name}`")),
        },
        ShownBy::Check {
            layer,
            scenario,
            check,
            says,
        } => match seen.verdict(&profile.name, *layer, scenario.as_str(), check.as_str()) {
            None => (None, format!("{layer}/{scenario} was not measured")),
            Some((_, verdict)) => {
                let told = format!("{layer}/{scenario}: {}", verdict.summary);
                match verdict.judgement {
                    Judgement::Pass | Judgement::Fail => (Some(verdict.judgement == *says), told),
                    Judgement::Inconclusive | Judgement::NotApplicable => (None, told),
                }
            }
        },
    };
    NoteFinding {
        text: note.text.clone(),
        holds,
        because,
    }
}

/// Whether somebody saw the layer at all.
pub(crate) fn unmeasured(standing: &Standing) -> Option<&str> {
    match standing {
        Standing::Unmeasured(why) => Some(why),
        Standing::Resumes(_) | Standing::Fails(_) => None,
    }
}
