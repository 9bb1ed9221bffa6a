//! A scenario: what is done to a workspace, and which checks judge it.

use reprise_check::CHECKS;
use reprise_engine::Power;
use reprise_model::{CheckName, EngineKind, Layer, ScenarioName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::{Document, FileError, LIMITS, nearest};

/// A restart behaviour to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; the file is called so, too.
    pub name: ScenarioName,
    /// What happens in it, in a sentence.
    pub summary: String,
    /// The layers it makes sense at; both where none is named.
    #[serde(default = "both_layers")]
    pub layers: Vec<Layer>,
    /// The engine whose own behaviour it tries. On another it runs only where it is named, and does the nearest thing there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// What is done, in order.
    pub steps: Vec<StepFile>,
    /// Which checks judge the history.
    pub checks: Vec<CheckName>,
}

fn both_layers() -> Vec<Layer> {
    vec![Layer::Native, Layer::Module]
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepFile {
    /// Start the workspace for the first time.
    Start,
    /// Give the agent its task (or, at the module layer, let the module give it) and wait for its answer.
    Task,
    /// End the workspace and start it again on the same volume.
    Restart(RestartKind),
    /// Send a message that goes on with the task, and wait for its answer.
    FollowUp,
    /// Have the model fail the agent's next turns, one failure each.
    ModelFails(Vec<ModelFailure>),
    /// End what runs the workspace on its node (a kubelet), and start that again.
    RestartNodeAgent,
    /// Make the workspace's volume larger while it is in use.
    GrowVolume,
}

/// How a model fails a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailure {
    /// It refuses with 429.
    RateLimited,
    /// It refuses with 500.
    ServerError,
    /// Its reply ends in the middle.
    BrokenStream,
}

/// How a workspace is ended before it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartKind {
    /// SIGTERM, stop scripts, then the end.
    Stop,
    /// SIGKILL.
    Kill,
    /// As `stop`; then only the paths come back that are claimed to hold the agent's session.
    ClaimedPathsOnly,
    /// The node is drained: an eviction that respects disruption budgets. Where there are no nodes, as `stop`.
    Drain,
    /// As `stop`, with a grace that ends before the stop scripts do.
    ShortGrace,
    /// As `stop`; then an instance of the same name comes back on the volume, as in a StatefulSet.
    Reattach,
    /// The container is killed, and started again in the same pod. Where nothing does that, as `kill`.
    KillContainer,
    /// The workspace takes more memory than it may have, and the kernel kills it. Where there is no limit, as `kill`.
    OutOfMemory,
}

impl Scenario {
    /// What an engine must be able to do beyond ending and starting workspaces.
    #[must_use]
    pub fn powers(&self) -> Vec<Power> {
        self.steps
            .iter()
            .filter_map(|step| match step {
                StepFile::RestartNodeAgent => Some(Power::RestartNodeAgent),
                StepFile::GrowVolume => Some(Power::GrowVolume),
                _ => None,
            })
            .collect()
    }

    /// Whether some restart is of this kind.
    #[must_use]
    pub fn restarts_by(&self, kind: RestartKind) -> bool {
        self.steps.contains(&StepFile::Restart(kind))
    }

    /// Reads a scenario from a file's text.
    ///
    /// # Errors
    /// With the place in the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        let document = Document { name: file, text };
        let scenario: Self = document.read()?;
        scenario.validate(document)?;
        Ok(scenario)
    }

    fn validate(&self, document: Document<'_>) -> Result<(), FileError> {
        if self.steps.len() > LIMITS.steps {
            let message = format!(
                "{} steps are more than the {} a scenario may have",
                self.steps.len(),
                LIMITS.steps
            );
            return Err(document.about("steps", message));
        }
        if self.steps.first() != Some(&StepFile::Start) {
            return Err(document.about("steps", "the first step must be `start`"));
        }
        if self.steps[1..].contains(&StepFile::Start) {
            let error = document.about("steps", "`start` stands twice");
            return Err(
                error.help("a workspace is started again by `restart: stop` or `restart: kill`")
            );
        }
        let tasks = self
            .steps
            .iter()
            .filter(|step| **step == StepFile::Task)
            .count();
        if tasks > 1 {
            return Err(document.about("task", "`task` stands more than once"));
        }
        let task = self.steps.iter().position(|step| *step == StepFile::Task);
        let follow_up = self
            .steps
            .iter()
            .position(|step| *step == StepFile::FollowUp);
        if follow_up.is_some_and(|follow_up| task.is_none_or(|task| follow_up < task)) {
            return Err(document.about("follow_up", "there is no task before this to follow up"));
        }
        if self.layers.is_empty() {
            return Err(document.about("layers", "no layer is named, so it would never run"));
        }
        if self.checks.is_empty() {
            return Err(document.about("checks", "no check is named, so it could never fail"));
        }
        for check in &self.checks {
            if reprise_check::find(check).is_none() {
                let error = document.about(check.as_str(), format!("there is no check `{check}`"));
                return Err(
                    match nearest(check.as_str(), CHECKS.iter().map(|check| check.name)) {
                        Some(name) => error.help(format!("did you mean `{name}`?")),
                        None => error.help("`reprise list checks` names them"),
                    },
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name: warm_restart\nsummary: s\nsteps:\n  - start\n  - task\n  - restart: stop\n  - follow_up\nchecks: [session_continues]\n";

    fn refused(text: &str) -> String {
        let error = Scenario::parse("bad.yaml", text).expect_err("it is not a scenario");
        let handler =
            miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
                .with_width(100);
        let mut shown = String::new();
        handler
            .render_report(&mut shown, &error)
            .expect("a string takes all");
        shown
    }

    #[test]
    fn reads_a_scenario() {
        let scenario = Scenario::parse("warm_restart.yaml", GOOD).expect("it is one");
        assert_eq!(scenario.steps[2], StepFile::Restart(RestartKind::Stop));
        assert_eq!(scenario.layers, [Layer::Native, Layer::Module]);
    }

    #[test]
    fn points_at_what_is_wrong() {
        insta::assert_snapshot!("unknown_key", refused(&GOOD.replace("summary", "sumary")));
        insta::assert_snapshot!("unknown_step", refused(&GOOD.replace("- task", "- tusk")));
        insta::assert_snapshot!(
            "unknown_restart",
            refused(&GOOD.replace("restart: stop", "restart: softly"))
        );
        insta::assert_snapshot!(
            "unknown_check",
            refused(&GOOD.replace("session_continues", "session_continue"))
        );
        insta::assert_snapshot!(
            "follow_up_without_task",
            refused(&GOOD.replace("  - task\n", ""))
        );
        insta::assert_snapshot!("not_yaml", refused("name: [\n"));
        insta::assert_snapshot!(
            "no_check",
            refused(&GOOD.replace("[session_continues]", "[]"))
        );
    }

    #[test]
    fn refuses_what_is_too_large_or_too_deep() {
        let large = format!("{GOOD}# {}\n", "x".repeat(LIMITS.bytes));
        assert!(refused(&large).contains("bytes"));
        let deep = format!("{GOOD}extra: {}{}\n", "[".repeat(40), "]".repeat(40));
        assert!(refused(&deep).contains("nested"));
        let bomb = format!(
            "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [{0}]\nc: &c [{1}]\nd: [{2}]\n",
            ["*a"; 9].join(","),
            ["*b"; 9].join(","),
            ["*c"; 9].join(",")
        );
        refused(&bomb);
    }

    proptest::proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*", at in 0usize..160, cut in 0usize..160) {
            let _ = Scenario::parse("x.yaml", &text);
            let mut damaged = GOOD.to_owned();
            damaged.truncate(cut.min(GOOD.len()));
            damaged.insert_str(at.min(damaged.len()), &text);
            let _ = Scenario::parse("x.yaml", &damaged);
        }
    }
}
