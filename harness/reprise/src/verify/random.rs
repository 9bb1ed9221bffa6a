//! Random scenarios and random faults: what nobody thought of writing down. A seed gives the same one again, and a failure is
//! made as short as it can be.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reprise_model::{CheckName, HoldPoint, Judgement, Layer, Subject};
use serde::Serialize;

use super::SWITCH;
use crate::runner::Wanted;
use crate::scenario::{
    Catalogue, CatalogueError, Conditions, ModelFailure, RestartKind, Scenario, StepFile, Suite,
};

/// The checks of a random scenario.
const CHECKS: [&str; 8] = [
    "task_received_once",
    "session_continues",
    "prompt_not_resent",
    "silent_until_follow_up",
    "tool_calls_preserved",
    "home_preserved",
    "rest_is_new",
    "no_crosstalk",
];

/// Faults of the reference agent that any restart with a follow-up after it shows, and the check that must notice.
const FAULTS: [(&str, &str); 6] = [
    ("session_forgotten", "session_continues"),
    ("replies_dropped", "session_continues"),
    ("tool_results_dropped", "tool_calls_preserved"),
    ("task_resent_natively", "prompt_not_resent"),
    ("task_sent_twice", "task_received_once"),
    ("words_of_another", "no_crosstalk"),
];

/// How often a failure may be made shorter.
const SHRINKS: usize = 40;

/// A part of a random scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    FollowUp,
    Restart(RestartKind),
    /// A turn is cut off at this point.
    CutTurn(HoldPoint),
    OtherSession,
    FlakyModel,
}

/// A random scenario and what goes wrong in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    moves: Vec<Move>,
    fault: Option<usize>,
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => Just(Move::FollowUp),
        3 => Just(Move::Restart(RestartKind::Stop)),
        3 => Just(Move::Restart(RestartKind::Kill)),
        1 => Just(Move::Restart(RestartKind::AtOnce)),
        1 => Just(Move::CutTurn(HoldPoint::Request)),
        1 => Just(Move::CutTurn(HoldPoint::Reply)),
        1 => Just(Move::CutTurn(HoldPoint::ToolCall)),
        1 => Just(Move::OtherSession),
        1 => Just(Move::FlakyModel),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let faults = prop_oneof![2 => Just(None), 1 => (0..FAULTS.len()).prop_map(Some)];
    (prop::collection::vec(moves(), 0..8), faults).prop_map(|(moves, fault)| Case { moves, fault })
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, rng)
}

impl Case {
    /// The fault that is seeded in it.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        self.fault.map(|place| FAULTS[place].0)
    }

    /// The scenario in full.
    ///
    /// # Panics
    /// Never: the names are well formed.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let mut steps = vec![StepFile::Start, StepFile::Task];
        for one in &self.moves {
            match one {
                Move::FollowUp => steps.push(StepFile::FollowUp),
                Move::Restart(kind) => steps.push(StepFile::Restart(*kind)),
                Move::CutTurn(at) => steps.extend([
                    StepFile::HoldModel(*at),
                    StepFile::BeginFollowUp,
                    StepFile::Restart(RestartKind::Kill),
                ]),
                Move::OtherSession => steps.push(StepFile::OpenOtherSession),
                Move::FlakyModel => steps.extend([
                    StepFile::ModelFails(vec![ModelFailure::ServerError]),
                    StepFile::FollowUp,
                ]),
            }
        }
        // Without these nothing could be said.
        steps.extend([
            StepFile::Restart(RestartKind::Stop),
            StepFile::FollowUp,
            StepFile::SearchHome,
        ]);
        Scenario {
            name: "random".parse().expect("a name"),
            summary: "Drawn at random.".to_owned(),
            layers: vec![Layer::Native],
            engine: None,
            suite: Suite::Basic,
            with: Conditions::default(),
            steps,
            checks: CHECKS
                .iter()
                .map(|name| name.parse().expect("a check's name"))
                .collect(),
        }
    }

    /// What is wrong with the verdicts that it got: with no fault each check passes, and with one the check that is there for it
    /// fails.
    #[must_use]
    pub fn problem(&self, verdicts: &[(CheckName, Judgement)]) -> Option<String> {
        let named = |wanted: Judgement| {
            verdicts
                .iter()
                .filter(move |(_, judgement)| *judgement == wanted)
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>()
        };
        let failed = named(Judgement::Fail);
        let unclear = named(Judgement::Inconclusive);
        if !unclear.is_empty() || verdicts.is_empty() {
            return Some(format!("could not be judged: {}", unclear.join(", ")));
        }
        match self.fault {
            None if failed.is_empty() => None,
            None => Some(format!(
                "nothing was wrong, and these failed: {}",
                failed.join(", ")
            )),
            Some(place) => {
                let (fault, check) = FAULTS[place];
                (!failed.contains(&check)).then(|| format!("`{fault}` was not noticed by {check}"))
            }
        }
    }
}

/// What becomes of a seed.
#[derive(Debug, Clone, Serialize)]
pub struct Drawn {
    /// The seed.
    pub seed: u64,
    /// What is wrong, if anything.
    pub problem: Option<String>,
    /// The fault that was seeded.
    pub fault: Option<&'static str>,
    /// The scenario: the shortest one that shows what is wrong.
    pub scenario: Scenario,
}

/// Runs the case of a seed by `run`, and if something is wrong with it, shorter and shorter ones, as long as it stays wrong.
///
/// # Errors
/// If `run` fails.
///
/// # Panics
/// Never: a case can always be drawn.
pub async fn draw<E>(
    seed: u64,
    mut run: impl AsyncFnMut(&Case) -> Result<Vec<(CheckName, Judgement)>, E>,
) -> Result<Drawn, E> {
    let mut tree = cases()
        .new_tree(&mut runner(seed))
        .expect("a strategy without filters always draws");
    let mut shown = tree.current();
    let mut problem = shown.problem(&run(&shown).await?);
    if problem.is_some() {
        let mut shorter = tree.simplify();
        for _ in 0..SHRINKS {
            if !shorter {
                break;
            }
            let case = tree.current();
            let found = case.problem(&run(&case).await?);
            shorter = match found {
                Some(_) => {
                    (shown, problem) = (case, found);
                    tree.simplify()
                }
                None => tree.complicate(),
            };
        }
    }
    Ok(Drawn {
        seed,
        problem,
        fault: shown.fault(),
        scenario: shown.scenario(),
    })
}

/// The cell of a case.
///
/// # Errors
/// If there is no reference agent.
pub fn wanted(case: &Case, part: String, catalogue: &Catalogue) -> Result<Wanted, CatalogueError> {
    let mut profile = catalogue.agent(super::REFERENCE)?.clone();
    if let Some(fault) = case.fault() {
        profile.env.insert(SWITCH.to_owned(), fault.to_owned());
    }
    Ok(Wanted {
        profile,
        subject: Subject::StandIn,
        layer: Layer::Native,
        scenario: case.scenario(),
        part: Some(part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(failed: &[&str]) -> Vec<(CheckName, Judgement)> {
        CHECKS
            .iter()
            .map(|name| {
                let judgement = match failed.contains(name) {
                    true => Judgement::Fail,
                    false => Judgement::Pass,
                };
                (name.parse().expect("a name"), judgement)
            })
            .collect()
    }

    #[tokio::test]
    async fn a_seed_gives_the_same_case_and_a_failure_is_made_short() {
        let pass = async |_: &Case| Ok::<_, ()>(verdicts(&[]));
        for seed in 0..20 {
            let one = draw(seed, pass).await.expect("it runs");
            let two = draw(seed, pass).await.expect("it runs");
            assert_eq!(one.scenario, two.scenario);
            // Every scenario that is drawn can be written down and read again.
            let text = serde_yaml::to_string(&serde_json::to_value(&one.scenario).expect("JSON"));
            let text = text.expect("a scenario is YAML");
            Scenario::parse("random.yaml", &text).expect("it is one");
        }
        // A kill breaks everything: what is left is a kill.
        let breaks = async |case: &Case| {
            let broken = case.moves.contains(&Move::Restart(RestartKind::Kill));
            Ok::<_, ()>(match (broken, case.fault) {
                (true, _) => verdicts(&["home_preserved"]),
                (false, Some(place)) => verdicts(&[FAULTS[place].1]),
                (false, None) => verdicts(&[]),
            })
        };
        let mut found = 0;
        for seed in 0..40 {
            let drawn = draw(seed, breaks).await.expect("it runs");
            if drawn.problem.is_some() {
                found += 1;
                let kills = StepFile::Restart(RestartKind::Kill);
                assert!(drawn.scenario.steps.contains(&kills));
                assert_eq!(drawn.scenario.steps.len(), 6, "{:?}", drawn.scenario.steps);
            }
        }
        assert!(found > 3);
    }
}
