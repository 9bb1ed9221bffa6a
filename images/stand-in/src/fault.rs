//! One thing that an agent of ours shall do wrong, so that the check that is there for it can be seen to notice it.
//!
//! `REPRISE_FAULT` names it. `scenarios/faults.yaml` says what each means and what must notice it; those it names that are not
//! here are the module's.

use serde::Deserialize;
use serde_json::Value;

use crate::conversation::Said;

/// What an agent does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    HistoryEndLost,
    HistoryBeginningLost,
    HistoryReordered,
    HistoryDoubled,
    OnlyTheLastTurn,
    Summarized,
    RepliesDropped,
    ToolCallsDropped,
    ToolResultsDropped,
    ToolsReordered,
    SessionForgotten,
    AnotherSessionResumed,
    TaskSentTwice,
    TaskDoubled,
    TaskNeverSent,
    TaskResentNatively,
    UnaskedTurn,
    FollowUpSwallowed,
    DiesWhenResumed,
    TitleHoldsTask,
    WordsOfAnother,
    FileOfAnother,
    SlowGrowth,
    LoginLost,
    DamagedStoreIsFatal,
    KeptOnlyWhenAnswered,
}

/// Words of a workspace that never was.
pub(crate) const FOREIGN: &str = "reprise-p0-0-0123456789ab";

/// What is asked for, if it is an agent's.
pub(crate) fn wanted() -> Option<Fault> {
    let name = std::env::var("REPRISE_FAULT").ok()?;
    serde_json::from_value(Value::String(name)).ok()
}

/// Whether this is asked for.
pub(crate) fn is(fault: Fault) -> bool {
    wanted() == Some(fault)
}

/// What a resumed session holds.
pub(crate) fn resumed(said: Vec<Said>) -> Vec<Said> {
    match wanted() {
        Some(fault) => change(fault, said),
        None => said,
    }
}

fn change(fault: Fault, mut said: Vec<Said>) -> Vec<Said> {
    let is_call = |said: &Said| matches!(said, Said::Call { .. });
    let is_output = |said: &Said| matches!(said, Said::Output { .. });
    match fault {
        Fault::HistoryEndLost => said.truncate(said.len() / 2),
        Fault::HistoryBeginningLost => drop(said.drain(..said.len() / 2)),
        Fault::HistoryReordered => said.reverse(),
        Fault::HistoryDoubled => said.extend(said.clone()),
        Fault::OnlyTheLastTurn => {
            let last = said
                .iter()
                .rposition(|said| matches!(said, Said::User { .. }));
            drop(said.drain(..last.unwrap_or(0)));
        }
        Fault::Summarized => {
            said = vec![Said::user("What went before: a task was done.")];
        }
        Fault::RepliesDropped => said.retain(|said| !matches!(said, Said::Model { .. })),
        Fault::ToolCallsDropped => said.retain(|said| !is_call(said)),
        Fault::ToolResultsDropped => said.retain(|said| !is_output(said)),
        Fault::ToolsReordered => {
            for place in 1..said.len() {
                if is_output(&said[place]) && is_call(&said[place - 1]) {
                    said.swap(place - 1, place);
                }
            }
        }
        Fault::SessionForgotten => said.clear(),
        _ => {}
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_changed_as_it_says() {
        let call = Said::Call {
            id: "1".to_owned(),
            command: "true".to_owned(),
        };
        let output = Said::Output {
            id: "1".to_owned(),
            text: String::new(),
        };
        let whole = vec![
            Said::user("task"),
            call.clone(),
            output.clone(),
            Said::model("done"),
        ];
        let changed = |fault| change(fault, whole.clone());
        assert_eq!(changed(Fault::HistoryEndLost), whole[..2]);
        assert_eq!(changed(Fault::HistoryBeginningLost), whole[2..]);
        assert_eq!(changed(Fault::HistoryDoubled).len(), 8);
        assert_eq!(changed(Fault::ToolsReordered)[1..3], [output, call]);
        assert_eq!(changed(Fault::RepliesDropped), whole[..3]);
        assert_eq!(changed(Fault::TaskSentTwice), whole);
    }
}
