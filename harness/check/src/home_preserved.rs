//! Does the home come back as it was left?
//!
//! Judged from the last look before the restart (after the stop scripts, or before the kill) and the first one
//! after it (before any script). A process may have written in between: a file with a later time of change
//! is no loss.

use reprise_model::{
    AgentEvent, Evidence, FileKind, History, Moment, Observation, Snapshot, Source,
};

use crate::ground::{Finding, because, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let mut evidence = Vec::new();
    let mut unseen = None;
    let mut files = 0;
    for (epoch, _) in history.restarts() {
        let last = history
            .snapshot(Moment::Left(epoch))
            .or_else(|| history.snapshot(Moment::Before(epoch)));
        let (Some(last), Some(found)) = (last, history.snapshot(Moment::Found(epoch))) else {
            unseen = unseen.or(Some(format!(
                "restart {epoch} lacks a look at the home before or after it{}",
                because(history)
            )));
            continue;
        };
        files = last.manifest.len();
        // Stop scripts that were cut off may have removed something that nobody saw them remove.
        let cut_off = history.snapshot(Moment::Left(epoch)).is_none()
            && history
                .agent_events(epoch - 1)
                .any(|(_, event)| matches!(event, AgentEvent::Stopping { .. }));
        evidence.extend(
            differences(last, found, cut_off).map(|(path, saw)| Evidence {
                source: Source::Snapshot {
                    name: Moment::Found(epoch).to_string(),
                    path,
                },
                at: Some(found.at),
                saw,
                expected: Some("the file as it was left".to_owned()),
            }),
        );
        let mark = history
            .observations
            .iter()
            .find_map(|(at, seen)| match seen {
                Observation::Marks { planted, home, .. } if *planted + 1 == epoch => {
                    Some((at, *home))
                }
                _ => None,
            });
        match mark {
            Some((_, true)) => {}
            Some((at, false)) => evidence.push(Evidence {
                source: Source::History,
                at: Some(*at),
                saw: "the mark left in the home before the restart is gone or changed".to_owned(),
                expected: Some("the mark, byte for byte".to_owned()),
            }),
            None => {
                unseen = unseen.or(Some(format!(
                    "nobody looked for the mark after restart {epoch}{}",
                    because(history)
                )));
            }
        }
    }
    if !evidence.is_empty() {
        return Finding::fail(
            format!("{} path(s) of the home did not come back", evidence.len()),
            evidence,
        );
    }
    match unseen {
        Some(why) => Finding::inconclusive(why),
        None => Finding::pass(format!("all {files} paths of the home came back")),
    }
}

fn differences<'a>(
    last: &'a Snapshot,
    found: &'a Snapshot,
    cut_off: bool,
) -> impl Iterator<Item = (String, String)> + 'a {
    let looked_ns = i64::try_from(last.at.wall.as_nanosecond()).unwrap_or(i64::MAX);
    last.manifest.iter().filter_map(move |(path, then)| {
        // Pipes and sockets belong to their process.
        if then.kind == FileKind::Other {
            return None;
        }
        let Some(now) = found.manifest.get(path) else {
            return (!cut_off).then(|| (path.clone(), format!("{path} is gone")));
        };
        let changed = now.kind != then.kind || now.hash != then.hash;
        (changed && now.mtime_ns <= looked_ns).then(|| {
            (
                path.clone(),
                format!(
                    "{path} is not what it was ({} then, {} now) though nobody wrote to it since",
                    then.size, now.size
                ),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::{file, history, home};

    fn judged(found: Snapshot, mark: bool) -> Finding {
        let left = home([file("a", "1"), file("b", "2")]).look();
        judge(
            &history()
                .task_done()
                .look(Moment::Before(1), left)
                .restart()
                .look(Moment::Found(1), found)
                .marks(mark, &[], false)
                .done(),
        )
    }

    #[test]
    fn passes_the_same_files() {
        let found = home([file("a", "1"), file("b", "2"), file("c", "3")]).look();
        assert_eq!(judged(found, true).judgement, Judgement::Pass);
    }

    #[test]
    fn fails_a_lost_file_a_changed_file_and_a_lost_mark() {
        let lost = home([file("a", "1")]).look();
        assert_eq!(judged(lost, true).judgement, Judgement::Fail);
        let changed = home([file("a", "1"), file("b", "other")]).look();
        assert_eq!(judged(changed, true).judgement, Judgement::Fail);
        let same = home([file("a", "1"), file("b", "2")]).look();
        assert_eq!(judged(same, false).judgement, Judgement::Fail);
    }

    #[test]
    fn passes_a_file_that_a_stop_removed_before_it_was_cut_off() {
        let before = home([file("pid", "1"), file("b", "2")]).look();
        let judged = |found: Snapshot| {
            let history = history()
                .task_done()
                .look(Moment::Before(1), before.clone())
                .stopping()
                .restart()
                .look(Moment::Found(1), found)
                .marks(true, &[], false)
                .done();
            judge(&history).judgement
        };
        assert_eq!(judged(home([file("b", "2")]).look()), Judgement::Pass);
        let changed = home([file("b", "other")]).look();
        assert_eq!(judged(changed), Judgement::Fail);
    }

    #[test]
    fn passes_a_file_written_to_after_the_look() {
        let mut found = home([file("a", "1"), file("b", "more")]).look();
        found
            .manifest
            .get_mut("b")
            .expect("it was just put there")
            .mtime_ns = i64::MAX;
        assert_eq!(judged(found, true).judgement, Judgement::Pass);
    }

    #[test]
    fn cannot_judge_without_a_look_after() {
        let history = history()
            .task_done()
            .look(Moment::Before(1), home([]).look())
            .restart()
            .done();
        assert_eq!(judge(&history).judgement, Judgement::Inconclusive);
    }
}
