//! Is each workspace's conversation seen in its own traffic and files only?

use reprise_model::{Evidence, History, Mark, Observation, Source};

use crate::ground::{Finding, because, on_the_wire, outline};

pub(crate) fn judge(history: &History) -> Finding {
    let mut evidence: Vec<Evidence> = history
        .wire
        .iter()
        .map(|exchange| &exchange.request)
        .filter(|request| {
            request
                .conversation
                .iter()
                .any(|message| message.marks.contains(&Mark::Foreign))
        })
        .map(|request| {
            on_the_wire(
                request,
                format!(
                    "a request holds another workspace's words: {}",
                    outline(request)
                ),
                "this workspace's words only",
            )
        })
        .collect();
    let mut files_seen = None;
    for (at, observation) in &history.observations {
        let Observation::NoncesInFiles { files } = observation else {
            continue;
        };
        files_seen = Some(files.len());
        evidence.extend(
            files
                .iter()
                .filter(|(_, marks)| marks.contains(&Mark::Foreign))
                .map(|(path, _)| Evidence {
                    source: Source::History,
                    at: Some(*at),
                    saw: format!("{path} holds another workspace's words"),
                    expected: Some("this workspace's words only".to_owned()),
                }),
        );
    }
    match (evidence.first(), files_seen) {
        (Some(first), _) => Finding::fail(first.saw.clone(), evidence),
        (None, None) => {
            Finding::inconclusive(format!("nobody searched the home{}", because(history)))
        }
        (None, Some(files)) => Finding::pass(format!(
            "{} request(s) and {files} file(s) hold this workspace's words only",
            history.wire.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use reprise_model::{Judgement, Role};

    use super::*;
    use crate::literal::*;

    fn found(mark: Mark) -> Observation {
        Observation::NoncesInFiles {
            files: BTreeMap::from([("log".to_owned(), vec![mark])]),
        }
    }

    #[test]
    fn anothers_words_are_found_on_the_wire_and_on_disk() {
        let own = history().task_done().observe(found(Mark::Prompt)).done();
        assert_eq!(judge(&own).judgement, Judgement::Pass);
        let disk = history().task_done().observe(found(Mark::Foreign)).done();
        assert_eq!(judge(&disk).judgement, Judgement::Fail);
        let wire = history()
            .main(vec![told(Role::User, vec![Mark::Foreign])])
            .observe(found(Mark::Prompt))
            .done();
        assert_eq!(judge(&wire).judgement, Judgement::Fail);
        let unseen = history().task_done().done();
        assert_eq!(judge(&unseen).judgement, Judgement::Inconclusive);
    }
}
