//! Reads a record back, a whole one or what a killed run left.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use reprise_model::{Exchange, FORMAT, History, Outcome, Record, Snapshot, Step, WireLine};
use serde::de::DeserializeOwned;

use super::{HISTORY, RecordError, SNAPSHOTS, WIRE};

/// Every record below a directory, in order of path.
///
/// # Errors
/// If there is none.
pub fn find_cells(dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let mut found: Vec<PathBuf> = walkdir::WalkDir::new(dir)
        .max_depth(7)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name() == HISTORY)
        .filter_map(|entry| entry.path().parent().map(Path::to_owned))
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(RecordError::NotFound {
            path: dir.to_owned(),
        });
    }
    Ok(found)
}

/// Lines of a `.jsonl` file. A last line without its end is what a kill left, and does not count.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RecordError> {
    let unreadable = |source| RecordError::Read {
        path: path.to_owned(),
        source,
    };
    let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut read = Vec::new();
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        if reader.read_until(b'\n', &mut text).map_err(unreadable)? == 0 || !text.ends_with(b"\n") {
            break;
        }
        let line = serde_json::from_slice(&text).map_err(|source| RecordError::Line {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        read.push(line);
    }
    Ok(read)
}

/// Reads the record in `dir`.
///
/// # Errors
/// If it is not there, is damaged other than by being cut off, or is of a newer format.
pub fn read(dir: &Path) -> Result<History, RecordError> {
    let path = dir.join(HISTORY);
    refuse_newer(&path)?;
    let mut records = lines::<Record>(&path)?.into_iter();
    let Some(Record::Header(header)) = records.next() else {
        return Err(RecordError::NoHeader { path });
    };
    let mut history = History {
        header: *header,
        steps: Vec::new(),
        observations: Vec::new(),
        wire: wire(&dir.join(WIRE))?,
        snapshots: snapshots(&dir.join(SNAPSHOTS))?,
        closing: None,
    };
    for record in records {
        match record {
            Record::Header(_) => {}
            Record::Intent { op, at, act } => history.steps.push(Step {
                op,
                at,
                act,
                ended: None,
                outcome: Outcome::Unknown {
                    reason: "the record ends before it did".to_owned(),
                },
            }),
            Record::Ended { op, at, outcome } => {
                if let Some(step) = history.steps.iter_mut().find(|step| step.op == op) {
                    step.ended = Some(at);
                    step.outcome = outcome;
                }
            }
            Record::Observed { at, observation } => history.observations.push((at, observation)),
            Record::Closed { closing, .. } => history.closing = Some(closing),
        }
    }
    Ok(history)
}

/// A newer format may not even be read as a header, so its version is looked at first.
fn refuse_newer(path: &Path) -> Result<(), RecordError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: reprise_model::FormatVersion,
    }
    let unreadable = |source| RecordError::Read {
        path: path.to_owned(),
        source,
    };
    let mut first = String::new();
    BufReader::new(File::open(path).map_err(unreadable)?)
        .read_line(&mut first)
        .map_err(unreadable)?;
    match serde_json::from_str::<Format>(&first) {
        Ok(Format { format }) if format.major > FORMAT.major => Err(RecordError::Newer {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        }),
        Ok(_) => Ok(()),
        Err(_) => Err(RecordError::NoHeader {
            path: path.to_owned(),
        }),
    }
}

fn wire(path: &Path) -> Result<Vec<Exchange>, RecordError> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for line in lines::<WireLine>(path)? {
        match line {
            WireLine::Request(request) => exchanges.push(Exchange {
                request,
                reply: None,
            }),
            WireLine::Reply(reply) => {
                if let Some(exchange) = exchanges
                    .iter_mut()
                    .find(|exchange| exchange.request.seq == reply.seq)
                {
                    exchange.reply = Some(reply);
                }
            }
        }
    }
    Ok(exchanges)
}

/// A snapshot that was cut off while it was written does not count: its line in the history is missing, too.
fn snapshots(dir: &Path) -> Result<BTreeMap<String, Snapshot>, RecordError> {
    let unreadable = |source| RecordError::Read {
        path: dir.to_owned(),
        source,
    };
    let mut snapshots = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        let text = fs::read(&path).map_err(unreadable)?;
        if let Ok(snapshot) = serde_json::from_slice(&text) {
            snapshots.insert(name.to_owned(), snapshot);
        }
    }
    Ok(snapshots)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A history's first line, as this program writes it.
    const HEADER: &str = r#"{"record":"header","format":"1.1","reprise":"0.1.0","run":"00000000-0000-0000-0000-000000000001","cell":{"engine":"sandbox","agent":"a","layer":"native","scenario":"s"},"workspace":"00000000-0000-0000-0000-000000000002","subject":"stand-in","versions":{},"nonces":{"seed":"00000000-0000-0000-0000-000000000003"},"checks":["session_continues"]}"#;

    fn record(history: &str, wire: &str, snapshot: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory can be made");
        fs::create_dir(dir.path().join(SNAPSHOTS)).expect("made");
        fs::write(dir.path().join(HISTORY), history).expect("written");
        fs::write(dir.path().join(WIRE), wire).expect("written");
        fs::write(dir.path().join(SNAPSHOTS).join("1-found.json"), snapshot).expect("written");
        dir
    }

    #[test]
    fn a_header_alone_is_a_record() {
        let dir = record(&format!("{HEADER}\n{{\"rec"), "", "{");
        let history = read(dir.path()).expect("it is one");
        assert!(history.steps.is_empty() && history.snapshots.is_empty());
        let _ = reprise_check::judge(&history);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics_on_any_record(history in ".*", wire in ".*", snapshot in ".*", cut in 0usize..400) {
            let whole = format!("{HEADER}\n{history}\n");
            let cut: String = whole.chars().take(cut).collect();
            for text in [whole, cut, history] {
                let dir = record(&text, &wire, &snapshot);
                if let Ok(history) = read(dir.path()) {
                    let _ = reprise_check::judge(&history);
                }
            }
        }
    }
}
