//! Pure checks: a recorded [`History`] in, a [`Verdict`] with evidence out.
//!
//! A check knows no disk, clock or environment, so a verdict can be computed again from a run's directory at any
//! time. Each check is one file with a history it passes, one it fails and one it calls inconclusive.

mod agent_type_passed;
mod chat_history_preserved;
mod comes_back;
mod ground;
mod home_preserved;
#[cfg(test)]
mod literal;
mod login_kept;
mod module_data_dir_honoured;
mod no_crosstalk;
mod nothing_outlives_stop;
mod prompt_not_resent;
mod rest_is_new;
mod saved_chat_kept;
mod script_data_left;
mod session_continues;
mod sidecars_preserved;
mod silent_until_follow_up;
mod snapshot_posted;
mod stops_in_order;
mod storage_as_claimed;
mod task_not_lost;
mod task_received_once;
mod tmp_left_alone;
mod tool_calls_preserved;
mod undisturbed;

use std::collections::BTreeMap;

use reprise_model::{CheckName, History, Judgement, Verdict};

use ground::Finding;

pub use tmp_left_alone::fixed_names;

/// One check: its name, what it asks, and how it judges.
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it asks, in a sentence.
    pub asks: &'static str,
    judge: fn(&History) -> Finding,
}

/// Every check, in the order in which reports show them.
pub const CHECKS: &[Check] = &[
    Check {
        name: "task_received_once",
        asks: "does the task reach the model once at the first start?",
        judge: task_received_once::judge,
    },
    Check {
        name: "session_continues",
        asks: "does the follow-up's request carry the replies given before the restart?",
        judge: session_continues::judge,
    },
    Check {
        name: "prompt_not_resent",
        asks: "is the task's prompt left alone after a restart?",
        judge: prompt_not_resent::judge,
    },
    Check {
        name: "silent_until_follow_up",
        asks: "does the agent ask its model nothing else between a restart and the follow-up?",
        judge: silent_until_follow_up::judge,
    },
    Check {
        name: "tool_calls_preserved",
        asks: "does a continued session still hold its tool calls and their results?",
        judge: tool_calls_preserved::judge,
    },
    Check {
        name: "sidecars_preserved",
        asks: "does every SQLite database keep its -wal and -shm, or is complete without them?",
        judge: sidecars_preserved::judge,
    },
    Check {
        name: "storage_as_claimed",
        asks: "does what the agent keeps fit the storage that is claimed to suffice, and how does it grow?",
        judge: storage_as_claimed::judge,
    },
    Check {
        name: "home_preserved",
        asks: "does the home come back as it was left?",
        judge: home_preserved::judge,
    },
    Check {
        name: "undisturbed",
        asks: "does the workspace go on as if nothing had happened while what runs it is started again?",
        judge: undisturbed::judge,
    },
    Check {
        name: "rest_is_new",
        asks: "is everything outside the home new after a restart?",
        judge: rest_is_new::judge,
    },
    Check {
        name: "chat_history_preserved",
        asks: "does AgentAPI show the conversation again after a restart?",
        judge: chat_history_preserved::judge,
    },
    Check {
        name: "snapshot_posted",
        asks: "does each stop hand the last ten messages to Coder, once?",
        judge: snapshot_posted::judge,
    },
    Check {
        name: "stops_in_order",
        asks: "is the state saved, then the log snapshot posted, then AgentAPI ended and waited for?",
        judge: stops_in_order::judge,
    },
    Check {
        name: "nothing_outlives_stop",
        asks: "has every process ended when the stop scripts have?",
        judge: nothing_outlives_stop::judge,
    },
    Check {
        name: "task_not_lost",
        asks: "does a task survive a start or a first turn that is cut off, and is it done once?",
        judge: task_not_lost::judge,
    },
    Check {
        name: "comes_back",
        asks: "whatever befell its session, does the agent start again and answer?",
        judge: comes_back::judge,
    },
    Check {
        name: "login_kept",
        asks: "is its user still logged in after a restart?",
        judge: login_kept::judge,
    },
    Check {
        name: "script_data_left",
        asks: "does a module keep nothing in directories that are new at each start?",
        judge: script_data_left::judge,
    },
    Check {
        name: "tmp_left_alone",
        asks: "does a module leave other modules' files in /tmp alone?",
        judge: tmp_left_alone::judge,
    },
    Check {
        name: "module_data_dir_honoured",
        asks: "does a module keep its data in the directory for modules' data?",
        judge: module_data_dir_honoured::judge,
    },
    Check {
        name: "no_crosstalk",
        asks: "is the conversation seen in its own workspace only?",
        judge: no_crosstalk::judge,
    },
    Check {
        name: "agent_type_passed",
        asks: "does the module tell AgentAPI which agent it runs?",
        judge: agent_type_passed::judge,
    },
    Check {
        name: "saved_chat_kept",
        asks: "is what AgentAPI had saved once shown for good?",
        judge: saved_chat_kept::judge,
    },
];

/// The check of that name.
#[must_use]
pub fn find(name: &CheckName) -> Option<Check> {
    CHECKS
        .iter()
        .find(|check| check.name == name.as_str())
        .copied()
}

impl Check {
    /// Judges a history.
    #[must_use]
    pub fn judge(&self, history: &History) -> Verdict {
        let finding = (self.judge)(history);
        Verdict {
            check: self.name.parse().expect("a check's name is well formed"),
            judgement: finding.judgement,
            summary: finding.summary,
            evidence: finding.evidence,
            figures: finding.figures,
        }
    }
}

/// Judges a history by the checks its header names.
///
/// A check this program does not know is inconclusive: an older program reads a newer history.
#[must_use]
pub fn judge(history: &History) -> Vec<Verdict> {
    history
        .header
        .checks
        .iter()
        .map(|name| match find(name) {
            Some(check) => check.judge(history),
            None => Verdict {
                check: name.clone(),
                judgement: Judgement::Inconclusive,
                summary: "this version of reprise has no check of that name".to_owned(),
                evidence: Vec::new(),
                figures: BTreeMap::new(),
            },
        })
        .collect()
}
