//! Does what the agent keeps fit the storage that is claimed to suffice, and how does it grow?

use std::collections::BTreeMap;

use reprise_model::{ByteSize, Evidence, FileKind, History, Moment, Snapshot, Source};

use crate::ground::{Finding, because, restarted};

/// Bytes of a megabyte, as the claims count them.
const MB: u64 = 1_000_000;

/// How many paths are named.
const SHOWN: usize = 8;

/// A look at the home, in bytes of what the agent and its module wrote there.
struct Look {
    inside: u64,
    outside: u64,
    /// Follow-ups answered until then.
    turns: u32,
}

impl Look {
    fn all(&self) -> u64 {
        self.inside + self.outside
    }
}

pub(crate) fn judge(history: &History) -> Finding {
    if let Err(finding) = restarted(history) {
        return finding;
    }
    let Some(claimed) = history.header.claim.storage_mb else {
        return Finding::not_applicable("no storage is claimed for this agent");
    };
    let Some(new) = history.snapshot(Moment::Found(0)) else {
        return Finding::inconclusive(format!("nobody looked at the new home{}", because(history)));
    };
    let looks: Vec<(Moment, Look)> = moments(history)
        .into_iter()
        .filter_map(|moment| {
            Some((
                moment,
                look(history, new, history.snapshot(moment)?, moment),
            ))
        })
        .collect();
    let Some((last, at_last)) = looks.last() else {
        return Finding::inconclusive(format!(
            "nobody looked at the home after the task{}",
            because(history)
        ));
    };
    let growth = Growth::of(&looks);
    let mut figures = BTreeMap::from([
        ("claimed_bytes".to_owned(), claimed * MB),
        ("inside_bytes".to_owned(), at_last.inside),
        ("outside_bytes".to_owned(), at_last.outside),
    ]);
    let mut told = format!(
        "{} in the claimed paths and {} outside them after {} follow-up(s)",
        ByteSize(at_last.inside),
        ByteSize(at_last.outside),
        at_last.turns
    );
    if let Some(growth) = &growth {
        told.push_str(&growth.told());
        figures.insert("per_turn_bytes".to_owned(), growth.per_turn);
        figures.insert("per_restart_bytes".to_owned(), growth.per_restart);
    }
    let mut evidence = Vec::new();
    if let Some(snapshot) = history.snapshot(*last) {
        evidence.extend(outside(history, new, snapshot, *last));
    }
    let finding = if at_last.all() > claimed * MB {
        evidence.insert(
            0,
            Evidence {
                source: Source::Snapshot {
                    name: last.to_string(),
                    path: String::new(),
                },
                at: history.snapshot(*last).map(|snapshot| snapshot.at),
                saw: format!("the agent and its module keep {}", ByteSize(at_last.all())),
                expected: Some(format!(
                    "at most the {claimed} MB that are claimed to suffice"
                )),
            },
        );
        Finding::fail(
            format!("more than the claimed {claimed} MB are in use: {told}"),
            evidence,
        )
    } else {
        Finding {
            evidence,
            ..Finding::pass(told)
        }
    };
    Finding { figures, ..finding }
}

/// Every look that can tell of growth, in order.
fn moments(history: &History) -> Vec<Moment> {
    let restarts = u32::try_from(history.restarts().count()).unwrap_or(u32::MAX);
    (1..=restarts)
        .flat_map(|epoch| [Moment::Before(epoch), Moment::Settled(epoch)])
        .collect()
}

fn look(history: &History, new: &Snapshot, snapshot: &Snapshot, moment: Moment) -> Look {
    let (Moment::Before(epoch)
    | Moment::Settled(epoch)
    | Moment::Left(epoch)
    | Moment::Found(epoch)
    | Moment::Tmp(epoch)) = moment;
    let turns = history
        .follow_ups()
        .filter(|(_, step)| history.epoch_of(step) < epoch)
        .count();
    let mut look = Look {
        inside: 0,
        outside: 0,
        turns: u32::try_from(turns).unwrap_or(u32::MAX),
    };
    for (path, size) in written(new, snapshot) {
        if history.header.claim.covers(path) {
            look.inside += size;
        } else {
            look.outside += size;
        }
    }
    look
}

/// Files that are not as the new home had them.
fn written<'a>(new: &'a Snapshot, now: &'a Snapshot) -> impl Iterator<Item = (&'a str, u64)> {
    now.manifest
        .iter()
        .filter(|(path, entry)| {
            entry.kind == FileKind::File
                && new
                    .manifest
                    .get(*path)
                    .is_none_or(|then| then.hash != entry.hash)
        })
        .map(|(path, entry)| (path.as_str(), entry.size.0))
}

/// What lies outside the claimed paths, the largest first.
fn outside(
    history: &History,
    new: &Snapshot,
    snapshot: &Snapshot,
    moment: Moment,
) -> Option<Evidence> {
    let mut files: Vec<(&str, u64)> = written(new, snapshot)
        .filter(|(path, _)| !history.header.claim.covers(path))
        .collect();
    if files.is_empty() {
        return None;
    }
    files.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let named: Vec<String> = files
        .iter()
        .take(SHOWN)
        .map(|(path, size)| format!("{path} ({})", ByteSize(*size)))
        .collect();
    let more = match files.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(Evidence {
        source: Source::Snapshot {
            name: moment.to_string(),
            path: files[0].0.to_owned(),
        },
        at: Some(snapshot.at),
        saw: format!("outside the claimed paths lie {}{more}", named.join(", ")),
        expected: None,
    })
}

/// What a turn and a restart add. Turns are fitted twice, early and late: a store that rewrites what it has grows faster and
/// faster.
struct Growth {
    per_turn: u64,
    late_per_turn: u64,
    per_restart: u64,
}

impl Growth {
    fn of(looks: &[(Moment, Look)]) -> Option<Self> {
        let mut turns = Vec::new();
        let mut restarts = Vec::new();
        for pair in looks.windows(2) {
            let [(_, before), (_, after)] = pair else {
                continue;
            };
            let more = after.all().saturating_sub(before.all());
            match after.turns.saturating_sub(before.turns) {
                0 => restarts.push(more),
                several => turns.push(more / u64::from(several)),
            }
        }
        let mean = |all: &[u64]| all.iter().sum::<u64>() / (all.len() as u64).max(1);
        Some(Self {
            per_turn: *turns.first()?,
            late_per_turn: *turns.last()?,
            per_restart: mean(&restarts),
        })
    }

    fn told(&self) -> String {
        let shape = if self.late_per_turn > self.per_turn + self.per_turn / 2 {
            "faster with each: quadratic"
        } else {
            "linear"
        };
        let mut told = format!(
            "; a turn adds {} ({shape}), a restart {}",
            ByteSize(self.late_per_turn),
            ByteSize(self.per_restart)
        );
        if let Some(turns) = (1000 * MB).checked_div(self.late_per_turn) {
            told.push_str(&format!("; a GB after {turns} such turns"));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use reprise_model::{Judgement, Role};

    use super::*;
    use crate::literal::{answered, asked, file, history, home, prompt, told};

    /// Three restarts with a follow-up after each, and a store of these sizes at these moments.
    fn grown(sizes: &[(Moment, usize)], claimed: Option<u64>) -> Finding {
        let mut built = history().task_done();
        built = built.look(Moment::Found(0), home([file("skel", "x")]).look());
        for (moment, size) in sizes {
            let store = "s".repeat(*size);
            let snapshot = home([file("skel", "x"), file(".a/store", &store)]).look();
            built = built.look(*moment, snapshot);
        }
        for epoch in 1..=3 {
            let said = vec![
                prompt(),
                answered(0, 0),
                told(Role::User, vec![]),
                asked(epoch),
            ];
            built = built.restart().follow_up(said);
        }
        let mut history = built.done();
        history.header.claim.paths = vec![".a/**".to_owned()];
        history.header.claim.storage_mb = claimed;
        judge(&history)
    }

    #[test]
    fn what_fits_passes_and_its_growth_is_told() {
        let sizes = [
            (Moment::Before(1), 100),
            (Moment::Settled(1), 110),
            (Moment::Before(2), 210),
            (Moment::Settled(2), 220),
            (Moment::Before(3), 320),
            (Moment::Settled(3), 330),
        ];
        let finding = grown(&sizes, Some(1));
        assert_eq!(finding.judgement, Judgement::Pass, "{}", finding.summary);
        assert_eq!(finding.figures["per_turn_bytes"], 100);
        assert_eq!(finding.figures["per_restart_bytes"], 10);
        assert_eq!(finding.figures["outside_bytes"], 0);
        assert!(finding.summary.contains("linear"), "{}", finding.summary);
    }

    #[test]
    fn what_does_not_fit_fails_and_faster_growth_is_told() {
        let sizes = [
            (Moment::Before(1), 1_000_000),
            (Moment::Settled(1), 1_000_000),
            (Moment::Before(2), 1_100_000),
            (Moment::Settled(2), 1_100_000),
            (Moment::Before(3), 1_400_000),
        ];
        let finding = grown(&sizes, Some(1));
        assert_eq!(finding.judgement, Judgement::Fail);
        assert!(finding.summary.contains("quadratic"), "{}", finding.summary);
    }

    #[test]
    fn without_a_claim_there_is_nothing_to_say() {
        assert_eq!(grown(&[], None).judgement, Judgement::NotApplicable);
        assert_eq!(grown(&[], Some(1)).judgement, Judgement::Inconclusive);
    }
}
