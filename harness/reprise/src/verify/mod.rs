//! Shows that each check notices the faults it is there for, and none where there is none.

mod engine;
mod faults;
pub mod random;

use std::collections::BTreeMap;

use reprise_model::{AgentName, Detection, Layer, Subject, Verification, fired};

pub use engine::FaultyEngine;
pub use faults::{Fault, builtin};

use crate::runner::{RunOutcome, Wanted};
use crate::scenario::{AgentProfile, Catalogue, CatalogueError, Scenario};

/// The environment variable that names a fault to those that can have it.
pub const SWITCH: &str = "REPRISE_FAULT";

/// The agent on which faults are seeded where nothing else is said.
const REFERENCE: &str = "reference";

/// How many steps a scenario may have to be walked again and again.
const LONG: usize = 40;

/// A cell for each fault.
///
/// # Errors
/// If a fault names an agent or a scenario that nobody has.
pub fn seeded(faults: &[Fault], catalogue: &Catalogue) -> Result<Vec<Wanted>, CatalogueError> {
    faults
        .iter()
        .map(|fault| {
            let agent = fault.agent.as_ref().map_or(REFERENCE, AgentName::as_str);
            let mut profile = catalogue.agent(agent)?.clone();
            let switch = fault.switch.as_ref().unwrap_or(&fault.name);
            profile.env.insert(SWITCH.to_owned(), switch.clone());
            Ok(Wanted {
                profile,
                subject: Subject::StandIn,
                layer: fault.layer,
                scenario: catalogue.scenario(fault.scenario.as_str())?.clone(),
                part: Some(fault.name.clone()),
            })
        })
        .collect()
}

/// So many cells without a fault: the scenarios that faults are seeded in, once at both layers, and then natively again and
/// again.
///
/// # Errors
/// If a fault names a scenario that nobody has.
pub fn healthy(
    count: usize,
    faults: &[Fault],
    catalogue: &Catalogue,
) -> Result<Vec<Wanted>, CatalogueError> {
    let reference: &AgentProfile = catalogue.agent(REFERENCE)?;
    let mut kinds: BTreeMap<(&str, Layer), &Scenario> = BTreeMap::new();
    for fault in faults {
        let scenario = catalogue.scenario(fault.scenario.as_str())?;
        // One of these takes as long as all the others.
        if scenario.walked().count() > LONG {
            continue;
        }
        for layer in &scenario.layers {
            kinds.insert((scenario.name.as_str(), *layer), scenario);
        }
    }
    let natively = kinds
        .iter()
        .filter(|((_, layer), _)| *layer == Layer::Native);
    Ok(kinds
        .iter()
        .chain(natively.cycle())
        .take(if kinds.is_empty() { 0 } else { count })
        .enumerate()
        .map(|(place, ((_, layer), scenario))| Wanted {
            profile: reference.clone(),
            subject: Subject::StandIn,
            layer: *layer,
            scenario: (*scenario).clone(),
            part: Some(format!("healthy-{place}")),
        })
        .collect())
}

/// What the cells of [`seeded`] and [`healthy`] faults gave. The first cells measured are the faults', in their order.
#[must_use]
pub fn conclude(faults: &[Fault], outcome: RunOutcome) -> Verification {
    let mut verification = Verification {
        not_measured: outcome
            .not_measured
            .iter()
            .map(|what| format!("{}: {}", what.cell, what.reason))
            .collect(),
        ..Verification::default()
    };
    let by_name: BTreeMap<&str, &Fault> = faults
        .iter()
        .map(|fault| (fault.name.as_str(), fault))
        .collect();
    for result in outcome.results {
        let part = result.directory.rsplit('/').next().unwrap_or_default();
        let fault = by_name.get(part);
        let (fired, trouble) = match fired(&result) {
            Ok(fired) => (fired, None),
            Err(trouble) => (Default::default(), Some(trouble)),
        };
        let detection = Detection {
            fault: fault.map_or_else(|| "nothing".to_owned(), |fault| fault.name.clone()),
            is: fault.map_or_else(|| "a healthy cell".to_owned(), |fault| fault.is.clone()),
            caught_by: fault
                .map(|fault| fault.caught_by.iter().cloned().collect())
                .unwrap_or_default(),
            cell: result.cell,
            fired,
            trouble,
            directory: result.directory,
        };
        if fault.is_some() {
            verification.faults.push(detection);
        } else {
            verification.healthy += 1;
            if !detection.is_right() {
                verification.alarms.push(detection);
            }
        }
    }
    verification
}
