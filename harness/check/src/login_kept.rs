//! Do the files come back without which its user must log in again?

use reprise_model::{Evidence, History, Moment, Source};

use crate::ground::{Finding, because, restarted};

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let login = &history.header.claim.login;
    if login.is_empty() {
        return Finding::not_applicable("no file is named that its user's login lies in");
    }
    let Some(before) = history.snapshot(Moment::Before(1)) else {
        return Finding::inconclusive(format!(
            "nobody looked at the home before the restart{}",
            because(history)
        ));
    };
    let mut evidence = Vec::new();
    let mut unseen = None;
    let mut kept = 0;
    let there: Vec<&String> = login
        .iter()
        .filter(|path| before.manifest.contains_key(*path))
        .collect();
    for (epoch, _) in history.restarts() {
        for moment in [Moment::Settled(epoch), Moment::Before(epoch + 1)] {
            let Some(after) = history.snapshot(moment) else {
                if matches!(moment, Moment::Settled(_)) {
                    unseen = unseen.or(Some(format!(
                        "nobody looked at the home after restart {epoch}{}",
                        because(history)
                    )));
                }
                continue;
            };
            for path in &there {
                match after.manifest.get(*path) {
                    Some(entry) if entry.size.0 > 0 => kept += 1,
                    _ => evidence.push(Evidence {
                        source: Source::Snapshot {
                            name: moment.to_string(),
                            path: (*path).clone(),
                        },
                        at: Some(after.at),
                        saw: format!("after restart {epoch}, {path} is gone or empty: its user must log in again"),
                        expected: Some(format!("{path}, as it was before")),
                    }),
                }
            }
        }
    }
    match (evidence.first(), unseen, kept) {
        (Some(first), ..) => Finding::fail(first.saw.clone(), evidence),
        (None, Some(why), _) => Finding::inconclusive(why),
        (None, None, 0) => Finding::not_applicable("nobody had logged in before the restart"),
        (None, None, _) => Finding::pass("its user stays logged in"),
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::Judgement;

    use super::*;
    use crate::literal::*;

    #[test]
    fn a_lost_login_is_told_of() {
        let after = |files: Home| {
            let history = history()
                .login("auth.json")
                .task_done()
                .look(Moment::Before(1), home([file("auth.json", "x")]).look())
                .restart()
                .look(Moment::Settled(1), files.look())
                .done();
            judge(&history).judgement
        };
        assert_eq!(after(home([file("auth.json", "x")])), Judgement::Pass);
        assert_eq!(after(home([file("auth.json", "")])), Judgement::Fail);
        assert_eq!(after(home([])), Judgement::Fail);
        let unseen = history().login("auth.json").task_done().restart().done();
        assert_eq!(judge(&unseen).judgement, Judgement::Inconclusive);
    }
}
