//! What several checks stand on: was there a session to lose, and did the restart take place?

use std::collections::BTreeMap;

use reprise_model::{
    Act, Closing, Evidence, Exchange, FileKind, History, Judgement, Mark, Moment, Outcome, Request,
    Role, Source, Step,
};

/// A verdict without its check's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) judgement: Judgement,
    pub(crate) summary: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) figures: BTreeMap<String, u64>,
}

impl Finding {
    pub(crate) fn pass(summary: impl Into<String>) -> Self {
        Self::of(Judgement::Pass, summary)
    }

    pub(crate) fn fail(summary: impl Into<String>, evidence: Vec<Evidence>) -> Self {
        Self {
            evidence,
            ..Self::of(Judgement::Fail, summary)
        }
    }

    pub(crate) fn inconclusive(summary: impl Into<String>) -> Self {
        Self::of(Judgement::Inconclusive, summary)
    }

    pub(crate) fn not_applicable(summary: impl Into<String>) -> Self {
        Self::of(Judgement::NotApplicable, summary)
    }

    fn of(judgement: Judgement, summary: impl Into<String>) -> Self {
        Self {
            judgement,
            summary: summary.into(),
            evidence: Vec::new(),
            figures: BTreeMap::new(),
        }
    }
}

/// The reply to the task, given before any restart.
pub(crate) const FIRST_ANSWER: Mark = Mark::Answer { epoch: 0, turn: 0 };

/// The exchange in which the task was answered at the first start.
pub(crate) fn task_answered(history: &History) -> Option<&Exchange> {
    history.main_exchanges(0).find(|exchange| {
        exchange.answered()
            && exchange
                .reply
                .as_ref()
                .is_some_and(|reply| reply.marks.contains(&FIRST_ANSWER))
    })
}

/// Whether a workspace was given no task: then its first follow-up begins its session.
fn without_task(history: &History) -> bool {
    let first = history.steps.iter().find_map(|step| match step.act {
        Act::Task | Act::BeginTask => Some(false),
        Act::FollowUp { .. } | Act::BeginFollowUp { .. } => Some(true),
        _ => None,
    });
    first == Some(true)
}

/// Whether the agent was answered anything that counts in its first start.
fn session_began(history: &History) -> bool {
    if !without_task(history) {
        return task_answered(history).is_some();
    }
    history.main_exchanges(0).any(|exchange| {
        exchange.answered()
            && exchange.reply.as_ref().is_some_and(|reply| {
                reply
                    .marks
                    .iter()
                    .any(|mark| matches!(mark, Mark::Answer { .. }))
            })
    })
}

/// What a check of restarts needs before it can judge: a task that was answered, and a restart.
pub(crate) fn restarted(history: &History) -> Result<(), Finding> {
    if !session_began(history) {
        return Err(Finding::inconclusive(format!(
            "the task was never answered before the restart, so there was no session to lose{}",
            because(history)
        )));
    }
    was_restarted(history)
}

/// What a check needs that asks nothing of a session: a restart.
pub(crate) fn was_restarted(history: &History) -> Result<(), Finding> {
    if history.restarts().next().is_none() {
        return Err(match history.closing {
            Some(Closing::Finished) => Finding::not_applicable("the scenario restarts nothing"),
            _ => Finding::inconclusive(format!(
                "the record ends before the restart{}",
                because(history)
            )),
        });
    }
    Ok(())
}

/// Why the run got no further, in words that follow a sentence.
pub(crate) fn because(history: &History) -> String {
    let trouble = history.steps.iter().find_map(|step| match &step.outcome {
        Outcome::Ok => None,
        Outcome::Failed { reason } | Outcome::Unknown { reason } => {
            Some(format!(": to {} ended so: {reason}", step.act))
        }
    });
    trouble
        .or_else(|| match &history.closing {
            Some(Closing::Cancelled { reason } | Closing::Stopped { reason }) => {
                Some(format!(": {reason}"))
            }
            Some(Closing::Finished) => None,
            None => Some(": it was cut off".to_owned()),
        })
        .unwrap_or_default()
}

/// What became of a restart, as far as the workspace and the agent's readiness go.
pub(crate) enum Restart<'a> {
    /// The agent came back and was at rest.
    Settled,
    /// Its module or the agent itself did not come back: behaviour.
    Refused(&'a Step, &'a str),
    /// The infrastructure failed, or the record ends.
    Unseen(String),
}

/// What became of restart `epoch`.
pub(crate) fn restart(history: &History, epoch: u32) -> Restart<'_> {
    let passed_by = history.step(&Act::Start { epoch: epoch + 1 }).is_some();
    for act in [Act::Start { epoch }, Act::Settle { epoch }] {
        let Some(step) = history.step(&act) else {
            // The next restart followed before the agent could be at rest, as it was meant to.
            if passed_by && matches!(act, Act::Settle { .. }) {
                continue;
            }
            return Restart::Unseen(format!(
                "the record ends before restart {epoch} was over{}",
                because(history)
            ));
        };
        match &step.outcome {
            Outcome::Ok => {}
            Outcome::Failed { reason } => return Restart::Refused(step, reason),
            Outcome::Unknown { reason } => {
                return Restart::Unseen(format!("to {} ended unknown: {reason}", step.act));
            }
        }
    }
    Restart::Settled
}

/// What is wrong with restarts after which the agent did not come back, and why those that were not seen through were not.
pub(crate) fn not_back(history: &History) -> (Vec<Evidence>, Option<String>) {
    let mut evidence = Vec::new();
    let mut unseen = None;
    for (epoch, _) in history.restarts() {
        match restart(history, epoch) {
            Restart::Settled => {}
            Restart::Refused(step, reason) => evidence.push(in_step(
                step,
                format!("after restart {epoch} the agent did not come back: {reason}"),
                "an agent at rest, ready for its user",
            )),
            Restart::Unseen(why) => unseen = unseen.or(Some(why)),
        }
    }
    (evidence, unseen)
}

/// How often the prompt stands as a user's message in the fullest request of the first start: agents may wrap
/// it in more than one message.
pub(crate) fn prompt_baseline(history: &History) -> usize {
    history
        .main_requests(0)
        .map(|request| request.count(Role::User, Mark::Prompt))
        .max()
        .unwrap_or(0)
        .max(1)
}

/// Whether a request made after a restart sends the task's prompt as something new, and not as the history of
/// a continued session.
pub(crate) fn resends_prompt(request: &Request, baseline: usize) -> bool {
    let prompts = request.count(Role::User, Mark::Prompt);
    if prompts > baseline {
        return true;
    }
    let Some(prompt) = request.place(Role::User, Mark::Prompt) else {
        return false;
    };
    let answered = request.count(Role::Assistant, FIRST_ANSWER) > 0;
    let followed_up = request.conversation[prompt..].iter().any(|message| {
        message.role == Role::User
            && message
                .marks
                .iter()
                .any(|mark| matches!(mark, Mark::FollowUp { .. }))
    });
    !answered && !followed_up
}

/// The first of the agent's own requests that holds follow-up `turn` as a user's message.
pub(crate) fn follow_up_request(history: &History, epoch: u32, turn: u32) -> Option<&Request> {
    history
        .main_requests(epoch)
        .find(|request| request.count(Role::User, Mark::FollowUp { turn }) > 0)
}

/// Evidence from the wire.
pub(crate) fn on_the_wire(
    request: &Request,
    saw: impl Into<String>,
    expected: impl Into<String>,
) -> Evidence {
    Evidence {
        source: Source::Wire {
            request: request.seq,
        },
        at: Some(request.at),
        saw: saw.into(),
        expected: Some(expected.into()),
    }
}

/// What a request's evidence says in short: without the outline of its conversation.
pub(crate) fn in_short(evidence: &Evidence) -> String {
    let short = evidence.saw.split(": [").next();
    short.unwrap_or_default().to_owned()
}

/// Evidence from a step.
pub(crate) fn in_step(
    step: &Step,
    saw: impl Into<String>,
    expected: impl Into<String>,
) -> Evidence {
    Evidence {
        source: Source::Step { op: step.op.0 },
        at: Some(step.ended.unwrap_or(step.at)),
        saw: saw.into(),
        expected: Some(expected.into()),
    }
}

/// What the agent had on disk of its sessions when start `epoch` began.
pub(crate) fn on_disk(history: &History, epoch: u32) -> Option<Evidence> {
    const SHOWN: usize = 8;
    let moment = Moment::Found(epoch);
    let snapshot = history.snapshot(moment)?;
    let prefixes: Vec<&str> = history
        .header
        .claim
        .paths
        .iter()
        .map(|path| path.trim_end_matches('*'))
        .collect();
    let files: Vec<String> = snapshot
        .manifest
        .iter()
        .filter(|(path, entry)| {
            entry.kind == FileKind::File && prefixes.iter().any(|prefix| path.starts_with(prefix))
        })
        .map(|(path, entry)| format!("{path} ({})", entry.size))
        .collect();
    let saw = match files.len() {
        0 => format!(
            "no session file was there: nothing below {}",
            prefixes.join(", ")
        ),
        several if several > SHOWN => {
            format!(
                "on disk were {} and {} more",
                files[..SHOWN].join(", "),
                several - SHOWN
            )
        }
        _ => format!("on disk were {}", files.join(", ")),
    };
    Some(Evidence {
        source: Source::Snapshot {
            name: moment.to_string(),
            path: prefixes.first().copied().unwrap_or_default().to_owned(),
        },
        at: Some(snapshot.at),
        saw,
        expected: None,
    })
}

/// A request's conversation in a line: who said how much, and what of ours it held.
pub(crate) fn outline(request: &Request) -> String {
    let said: Vec<String> = request
        .conversation
        .iter()
        .filter(|message| message.role != Role::System)
        .map(|message| {
            if message.marks.is_empty() {
                format!("{} ({} bytes)", message.role, message.bytes)
            } else {
                let marks: Vec<String> = message.marks.iter().map(ToString::to_string).collect();
                format!("{}: {}", message.role, marks.join(", "))
            }
        })
        .collect();
    format!("[{}]", said.join(" | "))
}

/// What the user's last message says, as far as it was kept.
pub(crate) fn last_user_excerpt(request: &Request) -> &str {
    request
        .conversation
        .iter()
        .rev()
        .find(|message| message.role == Role::User)
        .map_or("", |message| message.excerpt.as_str())
}
