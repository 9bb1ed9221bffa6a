//! Writes a record as the run goes on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use reprise_gateway::{Masker, Sink};
use reprise_model::{
    Act, Closing, Header, Moment, Observation, OpId, Outcome, Record, Snapshot, Stamp,
};

use super::{HISTORY, LOGS, RecordError, SNAPSHOTS, WIRE};

/// What a history is called until it has its header.
const UNBEGUN: &str = "history.jsonl.unbegun";

/// A record being written. Lines are whole and on their way to the disk when a call returns.
pub struct Recorder {
    dir: PathBuf,
    began: Instant,
    next: AtomicU64,
    history: Mutex<File>,
    wire: Mutex<File>,
    masker: Masker,
}

impl Recorder {
    /// Begins a record in `dir`, which must not hold one yet.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(dir: PathBuf, header: Header, masker: Masker) -> Result<Self, RecordError> {
        for sub in [SNAPSHOTS, LOGS] {
            let path = dir.join(sub);
            fs::create_dir_all(&path).map_err(|source| RecordError::Write { path, source })?;
        }
        let open = |name: &str| {
            let path = dir.join(name);
            File::options()
                .append(true)
                .create_new(true)
                .open(&path)
                .map(Mutex::new)
                .map_err(|source| RecordError::Write { path, source })
        };
        let history = dir.join(HISTORY);
        if history.exists() {
            let source = io::ErrorKind::AlreadyExists.into();
            return Err(RecordError::Write {
                path: history,
                source,
            });
        }
        let recorder = Self {
            history: open(UNBEGUN)?,
            wire: open(WIRE)?,
            dir,
            began: Instant::now(),
            next: AtomicU64::new(1),
            masker,
        };
        recorder.put(&Record::Header(Box::new(header)))?;
        // A history that is there has its header, whenever the run was killed.
        fs::rename(recorder.dir.join(UNBEGUN), &history).map_err(|source| RecordError::Write {
            path: history,
            source,
        })?;
        Ok(recorder)
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes down what is about to be done.
    ///
    /// # Errors
    /// If it cannot be written; then it must not be done.
    pub fn intend(&self, act: Act) -> Result<OpId, RecordError> {
        let op = OpId(self.next.fetch_add(1, Ordering::SeqCst));
        let at = self.now();
        self.put(&Record::Intent { op, at, act })?;
        Ok(op)
    }

    /// Writes down how it ended.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn ended(&self, op: OpId, outcome: Outcome) -> Result<(), RecordError> {
        let at = self.now();
        self.put(&Record::Ended { op, at, outcome })
    }

    /// Writes down something seen.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn observe(&self, observation: Observation) -> Result<(), RecordError> {
        let at = self.now();
        self.put(&Record::Observed { at, observation })
    }

    /// Writes a snapshot and that it was taken.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn snapshot(&self, moment: Moment, mut snapshot: Snapshot) -> Result<(), RecordError> {
        snapshot.at.us = self.now().us;
        let name = moment.to_string();
        let path = self.dir.join(SNAPSHOTS).join(format!("{name}.json"));
        let text = serde_json::to_vec(&snapshot).expect("a snapshot is JSON");
        fs::write(&path, text).map_err(|source| RecordError::Write { path, source })?;
        self.observe(Observation::SnapshotTaken { name })
    }

    /// Appends a line to a log.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn log(&self, name: &str, line: &str) -> Result<(), RecordError> {
        let path = self.dir.join(LOGS).join(name);
        let line = self.masker.mask(line);
        File::options()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|source| RecordError::Write { path, source })
    }

    /// Ends the record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn close(&self, closing: Closing) -> Result<(), RecordError> {
        let at = self.now();
        self.put(&Record::Closed { at, closing })
    }

    fn put(&self, record: &Record) -> Result<(), RecordError> {
        let text = serde_json::to_string(record).expect("a record is JSON");
        append(&self.history, self.masker.mask(&text).as_bytes()).map_err(|source| {
            RecordError::Write {
                path: self.dir.join(HISTORY),
                source,
            }
        })
    }
}

/// Appends a line in one write, so that a kill leaves whole lines or a last one that has no end.
fn append(file: &Mutex<File>, line: &[u8]) -> io::Result<()> {
    let mut whole = Vec::with_capacity(line.len() + 1);
    whole.extend_from_slice(line);
    whole.push(b'\n');
    file.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .write_all(&whole)
}

impl Sink for Recorder {
    fn now(&self) -> Stamp {
        Stamp {
            us: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            wall: jiff::Timestamp::now(),
        }
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        append(&self.wire, line)
    }
}
