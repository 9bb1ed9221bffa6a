//! What lay on a workspace's disk at one moment, as the probe saw it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Stamp;

/// A number of bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "a size is shown to one decimal place"
        )]
        let mut size = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while size >= 1024.0 && unit + 1 < UNITS.len() {
            size /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{size:.1} {}", UNITS[unit]))
    }
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link; never followed.
    Link,
    /// A pipe, socket or device; never opened.
    Other,
}

/// One path below the probed root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// What it is.
    pub kind: FileKind,
    /// Bytes; for a link the length of its target.
    pub size: ByteSize,
    /// Permission bits.
    pub mode: u32,
    /// Last change, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// SHA-256 in hex: of a file's bytes, or of a link's target. `None` where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Why the hash is missing (vanished, permission).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// A tree's paths, relative to its root; bytes that are not UTF-8 are shown as `\xNN`.
pub type Manifest = BTreeMap<String, ManifestEntry>;

/// Rows of each table, by name.
pub type TableRows = BTreeMap<String, u64>;

/// Which of `SQLite`'s files beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sidecar {
    /// The write-ahead log.
    Wal,
    /// The shared-memory index of the log.
    Shm,
}

impl Sidecar {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Wal, Self::Shm];

    /// What the file's name ends with (<https://www.sqlite.org/wal.html>).
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Wal => "-wal",
            Self::Shm => "-shm",
        }
    }
}

/// What `SQLite` itself says of a private copy of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidecarFacts {
    /// `PRAGMA integrity_check`: `ok`, or what it complains of, or why the database could not be opened.
    pub integrity: String,
    /// Rows of each table; empty where the database could not be read.
    pub rows: TableRows,
}

/// One `SQLite` database below the probed root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseFacts {
    /// Read with its -wal and -shm beside it, as an agent would.
    pub with_sidecars: SidecarFacts,
    /// Read from the main file alone, as after a careless copy.
    pub alone: SidecarFacts,
}

/// When a look at the home was taken. Its text is the snapshot's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// With the agent at rest, before restart `epoch` begins.
    Before(u32),
    /// When the stop scripts before restart `epoch` had ended. Not there after a kill.
    Left(u32),
    /// As start `epoch` found it, before its first script.
    Found(u32),
    /// With the agent at rest after start `epoch`.
    Settled(u32),
    /// `/tmp`, with the agent at rest after start `epoch`.
    Tmp(u32),
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(epoch) => write!(f, "{epoch}-before"),
            Self::Left(epoch) => write!(f, "{epoch}-left"),
            Self::Found(epoch) => write!(f, "{epoch}-found"),
            Self::Settled(epoch) => write!(f, "{epoch}-settled"),
            Self::Tmp(epoch) => write!(f, "{epoch}-tmp"),
        }
    }
}

/// One look at a workspace's disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When the look began.
    pub at: Stamp,
    /// The directory looked at.
    pub root: String,
    /// What is below it.
    pub manifest: Manifest,
    /// Every `SQLite` database among the files, by its path in the manifest.
    pub databases: BTreeMap<String, DatabaseFacts>,
}

impl Snapshot {
    /// The entry of a database's sidecar, if it is there.
    #[must_use]
    pub fn sidecar(&self, database: &str, sidecar: Sidecar) -> Option<&ManifestEntry> {
        self.manifest
            .get(&format!("{database}{}", sidecar.suffix()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_like_a_person_writes_them() {
        assert_eq!(ByteSize(17).to_string(), "17 B");
        assert_eq!(ByteSize(1536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize(300 << 20).to_string(), "300.0 MiB");
    }
}
