//! The directory of one cell's run.
//!
//! ```text
//! history.jsonl     steps and observations; the first line is the header
//! wire.jsonl        requests and replies, secrets masked
//! snapshots/*.json  what lay in the home
//! logs/*            what scripts and the agent wrote
//! ```
//!
//! Both `.jsonl` files are only ever appended to, a line at a time, so what a killed run left can be read.

mod reader;
mod recorder;

use std::io;
use std::path::PathBuf;

use reprise_model::FormatVersion;
use thiserror::Error;

pub use reader::{find_cells, read};
pub use recorder::Recorder;

const HISTORY: &str = "history.jsonl";
const WIRE: &str = "wire.jsonl";
const SNAPSHOTS: &str = "snapshots";
const LOGS: &str = "logs";

/// What can be wrong with a record.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It cannot be written.
    #[error("cannot write the record {}: {source} (is the disk full? --runs names another place)", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read the record {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("{}:{line} is no line of a record", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why not.
        source: serde_json::Error,
    },
    /// The first line is no header.
    #[error("{} does not begin with a header: it is no record, or ended before it began", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("{} is in format {found}, newer than this program's {known} (use the reprise that wrote it, or a newer one)", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: FormatVersion,
        /// This program's.
        known: FormatVersion,
    },
    /// No record was found.
    #[error("there is no record below {} (a run's directory has {HISTORY} files in it)", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
}
