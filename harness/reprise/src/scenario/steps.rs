//! A scenario: what is done to a workspace, and which checks judge it.

use std::collections::BTreeMap;

use clap::ValueEnum;
use reprise_check::CHECKS;
use reprise_engine::Power;
use reprise_model::{CheckName, EngineKind, HoldPoint, Layer, ScenarioName, SnapshotFault};
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::{Document, FileError, LIMITS, nearest};
use super::restarts::RestartKind;

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
    /// Which suite it belongs to.
    #[serde(default)]
    pub suite: Suite,
    /// What is unusual about the workspace.
    #[serde(default, skip_serializing_if = "Conditions::are_usual")]
    pub with: Conditions,
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
    /// Have the model answer so many of the agent's next turns at length: more than 13 KB each.
    LongAnswers(u16),
    /// End what runs the workspace on its node (a kubelet), and start that again.
    RestartNodeAgent,
    /// Make the workspace's volume larger while it is in use.
    GrowVolume,
    /// Have the model hold the agent's next turn at this point until the workspace ends. May stand before `start`.
    HoldModel(HoldPoint),
    /// Give the agent its task and wait until the model holds the turn it leads to.
    BeginTask,
    /// Send a follow-up and wait until the model holds the turn it leads to.
    BeginFollowUp,
    /// Start the workspace and kill it in this stage; `start` comes after it.
    CutStart(StartStage),
    /// Open a session of the user's own beside the task's, in the same directory, by the agent's own command.
    OpenOtherSession,
    /// Have log snapshots go wrong from now on.
    SnapshotsFail(SnapshotFault),
    /// Send a message that goes on with the task; that it is not answered does not end the scenario.
    TryFollowUp,
    /// Have AgentAPI take no signal and answer nobody any more.
    FreezeAgentapi,
    /// Look for nonces in the home's files.
    SearchHome,
    /// Write to the home until its volume is full.
    FillDisk,
    /// Remove what filled it.
    FreeDisk,
    /// The same steps, several times.
    Repeat(Repeat),
}

/// Steps that are done several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often.
    pub times: u16,
    /// What, in order.
    pub steps: Vec<StepFile>,
}

/// How far a start that is cut off gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartStage {
    /// A start script has begun.
    ScriptsBegun,
    /// Every start script has just ended.
    ScriptsEnded,
}

/// Scenarios that belong together.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Suite {
    /// What every workspace goes through: measured where nothing else is asked for
    #[default]
    Basic,
    /// What can befall a session
    Session,
    /// AgentAPI's conversation and how it ends
    Agentapi,
    /// Where modules keep their data
    ModuleData,
    /// A node that loses power
    Power,
    /// Quotas, full disks, growth
    Storage,
    /// Workspaces beside each other
    Isolation,
}

/// What is unusual about a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conditions {
    /// It is no task's: its agent is told what to do by messages only.
    pub without_prompt: bool,
    /// Where the agent works; `${home}` is known.
    pub directory: Option<String>,
    /// That directory is a link to this one.
    pub link_to: Option<String>,
    /// Variables of the module that are not its defaults. A module without them is not measured.
    pub settings: BTreeMap<String, Value>,
    /// Its first start has the release of the agent that came before the pinned one. An agent without such a pin is not measured.
    pub moves_up: bool,
    /// The version of AgentAPI.
    pub agentapi: Option<Version>,
    /// Environment of the workspace; `${home}` is known.
    pub env: BTreeMap<String, String>,
    /// Programs that the workspace's image does not have.
    pub without_programs: Vec<String>,
    /// The home is on a disk of its own, of so many MB of 10^6 bytes.
    pub disk_mb: Option<u64>,
    /// The home is on a disk of the storage that is claimed to suffice. An agent without such a claim is not measured.
    pub disk_as_claimed: bool,
}

impl Conditions {
    fn are_usual(&self) -> bool {
        *self == Self::default()
    }
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

impl Scenario {
    /// What an engine must be able to do beyond ending and starting workspaces.
    #[must_use]
    pub fn powers(&self) -> Vec<Power> {
        self.walked()
            .filter_map(|step| match step {
                StepFile::RestartNodeAgent => Some(Power::RestartNodeAgent),
                StepFile::GrowVolume => Some(Power::GrowVolume),
                _ => None,
            })
            .chain(self.wants_disk().then_some(Power::OwnDisk))
            .collect()
    }

    /// Whether session files are damaged in it.
    #[must_use]
    pub fn damages_sessions(&self) -> bool {
        self.restarts().any(|kind| kind.damage().is_some())
    }

    /// Whether the home must be on a disk of its own.
    #[must_use]
    pub fn wants_disk(&self) -> bool {
        self.with.disk_mb.is_some()
            || self.with.disk_as_claimed
            || self.restarts_by(RestartKind::PowerLoss)
    }

    /// Every step as it is walked: those that are repeated, as often as they are.
    pub fn walked(&self) -> impl Iterator<Item = &StepFile> {
        self.steps.iter().flat_map(|step| {
            let (times, steps) = match step {
                StepFile::Repeat(repeat) => (usize::from(repeat.times), repeat.steps.as_slice()),
                _ => (1, std::slice::from_ref(step)),
            };
            std::iter::repeat_n(steps, times).flatten()
        })
    }

    /// How it restarts, each time.
    pub fn restarts(&self) -> impl Iterator<Item = RestartKind> {
        self.walked().filter_map(|step| match step {
            StepFile::Restart(kind) => Some(*kind),
            _ => None,
        })
    }

    /// Whether some restart is of this kind.
    #[must_use]
    pub fn restarts_by(&self, kind: RestartKind) -> bool {
        self.restarts().any(|other| other == kind)
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
        let nested = self.steps.iter().any(|step| match step {
            StepFile::Repeat(repeat) => repeat
                .steps
                .iter()
                .any(|inner| matches!(inner, StepFile::Repeat(_))),
            _ => false,
        });
        if nested {
            return Err(document.about("repeat", "`repeat` stands within `repeat`"));
        }
        let steps: Vec<&StepFile> = self.walked().take(LIMITS.steps + 1).collect();
        if steps.len() > LIMITS.steps {
            let message = format!("more than the {} steps a scenario may have", LIMITS.steps);
            return Err(document.about("steps", message));
        }
        let start = steps.iter().position(|step| {
            !matches!(
                step,
                StepFile::HoldModel(_) | StepFile::CutStart(_) | StepFile::SnapshotsFail(_)
            )
        });
        if start.is_none_or(|start| *steps[start] != StepFile::Start) {
            return Err(document.about("steps", "the first step must be `start`"));
        }
        let starts = steps
            .iter()
            .filter(|step| **step == &StepFile::Start)
            .count();
        if starts > 1 {
            let error = document.about("steps", "`start` stands twice");
            return Err(
                error.help("a workspace is started again by `restart: stop` or `restart: kill`")
            );
        }
        let is_task = |step: &&StepFile| matches!(step, StepFile::Task | StepFile::BeginTask);
        let tasks = steps
            .iter()
            .filter(|step| **step == &StepFile::Task)
            .count();
        if tasks > 1 {
            return Err(document.about("task", "`task` stands more than once"));
        }
        let task = steps.iter().position(is_task);
        if self.with.without_prompt && task.is_some() {
            let message = "a workspace `without_prompt` has no task";
            return Err(document.about("task", message));
        }
        let follow_up = steps.iter().position(|step| {
            matches!(
                step,
                StepFile::FollowUp | StepFile::BeginFollowUp | StepFile::TryFollowUp
            )
        });
        // A start that is cut off has been given the task by its module.
        let cut = steps
            .iter()
            .any(|step| matches!(step, StepFile::CutStart(_)));
        if !self.with.without_prompt
            && !cut
            && follow_up.is_some_and(|follow_up| task.is_none_or(|task| follow_up < task))
        {
            return Err(document.about("follow_up", "there is no task before this to follow up"));
        }
        for (place, step) in steps.iter().enumerate() {
            let begins = matches!(step, StepFile::BeginTask | StepFile::BeginFollowUp);
            let held = || {
                steps[..place]
                    .iter()
                    .any(|step| matches!(step, StepFile::HoldModel(_)))
            };
            if begins && !held() {
                let message = "nothing would hold it: `hold_model` must stand before it";
                return Err(document.about("begin_", message));
            }
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
