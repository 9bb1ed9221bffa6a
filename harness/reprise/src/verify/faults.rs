//! The faults that can be seeded: `scenarios/faults.yaml`.

use reprise_model::{AgentName, CheckName, Layer, ScenarioName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::{FileError, read_list};

const TEXT: &str = include_str!("../../../../scenarios/faults.yaml");

/// One thing that goes wrong on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its name.
    pub name: String,
    /// What `REPRISE_FAULT` holds, if not its name.
    #[serde(default)]
    pub switch: Option<String>,
    /// What goes wrong, in a sentence.
    pub is: String,
    /// Whose agent is played, if not the reference agent.
    #[serde(default)]
    pub agent: Option<AgentName>,
    /// At which layer it is seeded.
    pub layer: Layer,
    /// Through which scenario.
    pub scenario: ScenarioName,
    /// The checks that must notice it, and no others may; none for what looks like a fault and is none.
    pub caught_by: Vec<CheckName>,
}

/// Every fault.
///
/// # Errors
/// If the file is wrong; a test keeps that from being released.
pub fn builtin() -> Result<Vec<Fault>, FileError> {
    read_list("faults.yaml", TEXT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reprise_check::CHECKS;

    use super::*;
    use crate::scenario::Catalogue;

    #[test]
    fn there_is_a_fault_for_every_check_and_none_is_misspelt() {
        let faults = builtin().expect("a test reads it");
        let catalogue = Catalogue::builtin().expect("a test reads it");
        let named: BTreeSet<&str> = faults
            .iter()
            .flat_map(|fault| fault.caught_by.iter().map(CheckName::as_str))
            .collect();
        let known: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(named, known);
        let names: BTreeSet<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
        assert_eq!(names.len(), faults.len(), "a name stands twice");
        assert!(
            faults
                .iter()
                .filter(|fault| !fault.caught_by.is_empty())
                .count()
                >= 40
        );
        for fault in &faults {
            let scenario = catalogue
                .scenario(fault.scenario.as_str())
                .expect("it is there");
            assert!(scenario.layers.contains(&fault.layer), "{}", fault.name);
            for check in &fault.caught_by {
                assert!(scenario.checks.contains(check), "{}: {check}", fault.name);
            }
        }
    }
}
