//! What several runs saw, by cell. A real agent outweighs its stand-in, and of two engines the worse result counts: a module
//! that loses a session anywhere loses sessions.

use std::collections::BTreeSet;

use reprise_model::{
    AgentName, CellResult, EngineKind, Judgement, Layer, ModuleRef, NotMeasured, Results, Subject,
    Verdict,
};

/// What was seen.
pub struct Seen<'a> {
    results: Vec<&'a CellResult>,
    not_measured: Vec<&'a NotMeasured>,
}

impl<'a> Seen<'a> {
    /// What these runs saw, the latest last.
    #[must_use]
    pub fn of(runs: &'a [Results]) -> Self {
        let mut seen = Self {
            results: Vec::new(),
            not_measured: Vec::new(),
        };
        for run in runs {
            for result in &run.results {
                // A later run of the same cell with the same kind of agent takes its place.
                seen.results.retain(|known| {
                    known.cell != result.cell
                        || known.subject != result.subject
                        || known.settings != result.settings
                });
                seen.results.push(result);
            }
            seen.not_measured.extend(&run.not_measured);
        }
        seen
    }

    /// The result that counts for a cell, whichever engine it ran on.
    pub(super) fn cell(
        &self,
        agent: &AgentName,
        layer: Layer,
        scenario: &str,
    ) -> Option<&'a CellResult> {
        self.results
            .iter()
            .filter(|result| {
                let cell = &result.cell;
                cell.agent == *agent && cell.layer == layer && cell.scenario.as_str() == scenario
            })
            .filter(|result| result.settings.is_empty())
            // A stand-in says nothing of what the agent alone does.
            .filter(|result| layer == Layer::Module || result.subject == Subject::RealAgent)
            .max_by_key(|result| {
                let conclusive = result.judgement != Judgement::Inconclusive;
                (
                    conclusive,
                    result.subject == Subject::RealAgent,
                    result.judgement,
                )
            })
            .copied()
    }

    /// Whether the session goes on, and the task is not sent again, with some setting that is not the default; which.
    pub(super) fn with_settings(&self, agent: &AgentName, scenario: &str) -> Option<String> {
        self.results
            .iter()
            .find(|result| {
                let cell = &result.cell;
                cell.agent == *agent
                    && cell.layer == Layer::Module
                    && cell.scenario.as_str() == scenario
                    && !result.settings.is_empty()
                    && result.judgement == Judgement::Pass
            })
            .map(|result| {
                let settings = result.settings.iter();
                let told: Vec<String> = settings
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                told.join(" ")
            })
    }

    /// What a check said in a cell.
    pub(super) fn verdict(
        &self,
        agent: &AgentName,
        layer: Layer,
        scenario: &str,
        check: &str,
    ) -> Option<(&'a CellResult, &'a Verdict)> {
        let result = self.cell(agent, layer, scenario)?;
        let verdict = result
            .verdicts
            .iter()
            .find(|verdict| verdict.check.as_str() == check)?;
        Some((result, verdict))
    }

    /// Why a cell was not measured.
    pub(super) fn reason(
        &self,
        agent: &AgentName,
        layer: Layer,
        scenario: &str,
    ) -> Option<&'a str> {
        self.not_measured
            .iter()
            .rev()
            .find(|missing| {
                let cell = &missing.cell;
                cell.agent == *agent && cell.layer == layer && cell.scenario.as_str() == scenario
            })
            .map(|missing| missing.reason.as_str())
    }

    /// Where an agent was measured.
    pub(super) fn engines(&self, agent: &AgentName) -> Vec<EngineKind> {
        let engines: BTreeSet<EngineKind> = self
            .results
            .iter()
            .filter(|result| result.cell.agent == *agent)
            .map(|result| result.cell.engine)
            .collect();
        engines.into_iter().collect()
    }

    /// The variables of the module that was measured.
    pub(super) fn module_variables(
        &self,
        agent: &AgentName,
    ) -> Option<(&'a ModuleRef, &'a BTreeSet<String>)> {
        self.results.iter().rev().find_map(|result| {
            (result.cell.agent == *agent && !result.module_variables.is_empty())
                .then(|| Some((result.module.as_ref()?, &result.module_variables)))
                .flatten()
        })
    }
}
