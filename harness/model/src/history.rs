//! The history of one cell's run: what was meant, what was done, what was seen.
//!
//! Every act is written down before it is done ([`Record::Intent`]) and again when it ended ([`Record::Ended`]).
//! An act without an end was cut off, and its outcome is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Act, AgentEvent, Cell, CheckName, Claim, Exchange, InstanceId, Mark, Message, ModuleRef,
    NonceBook, Request, RunId, Snapshot, Subject, WorkspaceId,
};

/// The format this program writes.
pub const FORMAT: FormatVersion = FormatVersion { major: 1, minor: 1 };

/// The version of a run directory's format: a reader refuses a newer major and ignores what a newer minor added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FormatVersion {
    /// Raised when an older reader would misread.
    pub major: u32,
    /// Raised when something was added.
    pub minor: u32,
}

/// A format version that is not `MAJOR.MINOR`.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("`{0}` is not a format version: MAJOR.MINOR is meant")]
pub struct FormatVersionError(String);

impl FromStr for FormatVersion {
    type Err = FormatVersionError;
    fn from_str(text: &str) -> Result<Self, FormatVersionError> {
        let wrong = || FormatVersionError(text.to_owned());
        let (major, minor) = text.split_once('.').ok_or_else(wrong)?;
        Ok(Self {
            major: major.parse().map_err(|_| wrong())?,
            minor: minor.parse().map_err(|_| wrong())?,
        })
    }
}

impl TryFrom<String> for FormatVersion {
    type Error = FormatVersionError;
    fn try_from(text: String) -> Result<Self, FormatVersionError> {
        text.parse()
    }
}

impl From<FormatVersion> for String {
    fn from(version: FormatVersion) -> String {
        version.to_string()
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A moment, by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Microseconds since the cell's run began, by a clock that never goes back.
    pub us: u64,
    /// The time of day.
    pub wall: jiff::Timestamp,
}

impl Stamp {
    /// A moment of a literal history, `us` after its beginning.
    #[must_use]
    pub fn literal(us: u64) -> Self {
        Self {
            us,
            wall: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    /// Seconds since the cell's run began.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        std::time::Duration::from_micros(self.us).as_secs_f64()
    }
}

/// A step's number in its history, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpId(pub u64);

/// The first line of a history: what is measured, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the whole directory.
    pub format: FormatVersion,
    /// The version of the program that wrote it.
    pub reprise: String,
    /// The run.
    pub run: RunId,
    /// The cell.
    pub cell: Cell,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Real agent or stand-in.
    pub subject: Subject,
    /// The module, at the module layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<ModuleRef>,
    /// The module's variables.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub module_variables: BTreeSet<String>,
    /// The module's variables that the user set otherwise than a template would.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Versions of what took part: agent, AgentAPI, Terraform, engine.
    pub versions: BTreeMap<String, String>,
    /// The nonces.
    pub nonces: NonceBook,
    /// The checks this history is meant for.
    pub checks: Vec<CheckName>,
    /// What is claimed of the agent: where its session files lie, and how much they take.
    #[serde(default)]
    pub claim: Claim,
}

/// How an act ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Ok,
    /// The agent or its module did not do its part.
    Failed {
        /// What was seen.
        reason: String,
    },
    /// The infrastructure did not do its part, or the act was cut off.
    Unknown {
        /// What is known.
        reason: String,
    },
}

/// Something seen while the run went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "saw", rename_all = "snake_case")]
pub enum Observation {
    /// A start gave this instance.
    Instance {
        /// Which start.
        epoch: u32,
        /// The engine's id of it.
        id: InstanceId,
    },
    /// PID 1 said so.
    Agent {
        /// Which start.
        epoch: u32,
        /// What it said.
        event: AgentEvent,
    },
    /// AgentAPI's status changed.
    AgentApiStatus {
        /// `running` or `stable`.
        status: String,
    },
    /// A command of the agent's own ended.
    Command {
        /// What was run.
        argv: Vec<String>,
        /// Its exit code.
        code: Option<i32>,
        /// The end of what it wrote.
        tail: String,
    },
    /// A snapshot was written to `snapshots/NAME.json`.
    SnapshotTaken {
        /// Its name.
        name: String,
    },
    /// Which of the marks left in start `epoch` are still there.
    Marks {
        /// The start in which they were left.
        planted: u32,
        /// The mark in the home, unchanged.
        home: bool,
        /// Paths outside the home whose mark is still there.
        outside: Vec<String>,
        /// Whether the process is still there.
        process: bool,
    },
    /// What AgentAPI shows of the conversation to the user.
    Shown {
        /// When, as a snapshot's name.
        moment: String,
        /// The messages, oldest first.
        messages: Vec<Message>,
    },
    /// What runs in the workspace, with the agent at rest.
    Processes {
        /// In which start.
        epoch: u32,
        /// Command lines.
        lines: Vec<String>,
    },
    /// Files of the home that hold nonces.
    NoncesInFiles {
        /// By path below the home.
        files: BTreeMap<String, Vec<Mark>>,
    },
}

/// How a history ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Closing {
    /// Every step was walked.
    Finished,
    /// A step ended badly and the rest made no sense.
    Stopped {
        /// Which and why.
        reason: String,
    },
    /// The user, or a deadline, ended it.
    Cancelled {
        /// Which.
        reason: String,
    },
}

/// One line of `history.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The first line.
    Header(Box<Header>),
    /// An act is about to be done.
    Intent {
        /// Its number.
        op: OpId,
        /// When.
        at: Stamp,
        /// What.
        #[serde(rename = "do")]
        act: Act,
    },
    /// An act ended.
    Ended {
        /// Its number.
        op: OpId,
        /// When.
        at: Stamp,
        /// How.
        #[serde(rename = "with")]
        outcome: Outcome,
    },
    /// Something was seen.
    Observed {
        /// When.
        at: Stamp,
        /// What.
        #[serde(rename = "what")]
        observation: Observation,
    },
    /// The last line.
    Closed {
        /// When.
        at: Stamp,
        /// How.
        #[serde(rename = "as")]
        closing: Closing,
    },
}

/// An act with its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub op: OpId,
    /// When it began.
    pub at: Stamp,
    /// What was meant.
    pub act: Act,
    /// When it ended; `None` if the record stops before.
    pub ended: Option<Stamp>,
    /// How it ended; unknown if the record stops before.
    pub outcome: Outcome,
}

/// The whole of one cell's run, as checks read it.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// What was measured.
    pub header: Header,
    /// Every act, in order.
    pub steps: Vec<Step>,
    /// Everything seen, in order.
    pub observations: Vec<(Stamp, Observation)>,
    /// Every exchange with the model, in order.
    pub wire: Vec<Exchange>,
    /// Every snapshot, by name.
    pub snapshots: BTreeMap<String, Snapshot>,
    /// How it ended; `None` if it was cut off.
    pub closing: Option<Closing>,
}

impl History {
    /// The first step that did `act`.
    #[must_use]
    pub fn step(&self, act: &Act) -> Option<&Step> {
        self.steps.iter().find(|step| step.act == *act)
    }

    /// The numbers of the follow-ups that were meant to be sent, in order.
    pub fn follow_ups(&self) -> impl Iterator<Item = (u32, &Step)> {
        self.steps.iter().filter_map(|step| match step.act {
            Act::FollowUp { turn } => Some((turn, step)),
            _ => None,
        })
    }

    /// The starts after the first, in order.
    pub fn restarts(&self) -> impl Iterator<Item = (u32, &Step)> {
        self.steps.iter().filter_map(|step| match step.act {
            Act::Start { epoch } if epoch > 0 => Some((epoch, step)),
            _ => None,
        })
    }

    /// The agent's own turns of one start.
    pub fn main_requests(&self, epoch: u32) -> impl Iterator<Item = &Request> {
        self.main_exchanges(epoch).map(|exchange| &exchange.request)
    }

    /// The agent's own turns of one start, with their replies.
    pub fn main_exchanges(&self, epoch: u32) -> impl Iterator<Item = &Exchange> {
        self.wire.iter().filter(move |exchange| {
            exchange.request.epoch == epoch && exchange.request.class == crate::Class::Main
        })
    }

    /// The snapshot of a moment.
    #[must_use]
    pub fn snapshot(&self, moment: crate::Moment) -> Option<&Snapshot> {
        self.snapshots.get(&moment.to_string())
    }

    /// Which start of the workspace a step belongs to: that of the last start begun before it.
    #[must_use]
    pub fn epoch_of(&self, step: &Step) -> u32 {
        self.steps
            .iter()
            .filter(|earlier| earlier.op <= step.op)
            .filter_map(|earlier| match earlier.act {
                Act::Start { epoch } => Some(epoch),
                _ => None,
            })
            .max()
            .unwrap_or(0)
    }

    /// What AgentAPI showed at a moment.
    #[must_use]
    pub fn shown(&self, at: crate::Moment) -> Option<&[Message]> {
        let name = at.to_string();
        self.observations.iter().find_map(|(_, seen)| match seen {
            Observation::Shown { moment, messages } if *moment == name => Some(messages.as_slice()),
            _ => None,
        })
    }

    /// What PID 1 said in one start.
    pub fn agent_events(&self, epoch: u32) -> impl Iterator<Item = (Stamp, &AgentEvent)> {
        self.observations
            .iter()
            .filter_map(move |(at, observation)| match observation {
                Observation::Agent { epoch: of, event } if *of == epoch => Some((*at, event)),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn format_versions_read_back() {
        assert_eq!("1.1".parse(), Ok(FORMAT));
        assert!("1".parse::<FormatVersion>().is_err());
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Ok),
            ".*".prop_map(|reason| Outcome::Failed { reason }),
            ".*".prop_map(|reason| Outcome::Unknown { reason }),
        ]
    }

    fn acts() -> impl Strategy<Value = Act> {
        prop_oneof![
            Just(Act::Task),
            Just(Act::Stop { by: None }),
            any::<u32>().prop_map(|epoch| Act::Start { epoch }),
            any::<u32>().prop_map(|turn| Act::FollowUp { turn }),
            "[a-z]{1,8}".prop_map(|snapshot| Act::Probe { snapshot }),
        ]
    }

    fn records() -> impl Strategy<Value = Record> {
        let stamps = (0..1u64 << 50).prop_map(Stamp::literal);
        prop_oneof![
            (any::<u64>(), stamps.clone(), acts()).prop_map(|(op, at, act)| Record::Intent {
                op: OpId(op),
                at,
                act
            }),
            (any::<u64>(), stamps.clone(), outcomes()).prop_map(|(op, at, outcome)| {
                Record::Ended {
                    op: OpId(op),
                    at,
                    outcome,
                }
            }),
            (stamps, ".*").prop_map(|(at, line)| Record::Observed {
                at,
                observation: Observation::Agent {
                    epoch: 0,
                    event: AgentEvent::Trouble { message: line },
                },
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_record_survives_its_line(record in records()) {
            let line = serde_json::to_string(&record).expect("a record is JSON");
            prop_assert!(!line.contains('\n'));
            let back: Record = serde_json::from_str(&line).expect("its own line is read back");
            prop_assert_eq!(back, record);
        }
    }
}
