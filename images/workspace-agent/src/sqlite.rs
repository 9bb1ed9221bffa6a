//! What `SQLite` itself says of a database, read from a private copy so that nothing here touches the agent's.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use reprise_model::{DatabaseFacts, SidecarFacts, TableRows};
use rusqlite::Connection;

use crate::probe::open;

/// How every database file begins (<https://www.sqlite.org/fileformat2.html#magic_header_string>).
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// How often a copy is taken again because the agent wrote while it was taken.
const COPIES: usize = 5;

/// Reads a database with its log beside it, and alone.
pub(crate) fn facts(anchor: &OwnedFd, path: &Path) -> DatabaseFacts {
    let facts = |with_log| match copy(anchor, path, with_log) {
        Ok(copy) => read(&copy),
        Err(error) => unreadable(&error),
    };
    DatabaseFacts {
        with_sidecars: facts(true),
        alone: facts(false),
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> SidecarFacts {
    SidecarFacts {
        integrity: error.to_string(),
        rows: TableRows::new(),
    }
}

/// A copy in a directory of its own, which goes with it.
struct Copy {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

/// Copies the database and, if asked for, its log. The -shm is an index that `SQLite` makes anew from the log.
fn copy(anchor: &OwnedFd, path: &Path, with_log: bool) -> io::Result<Copy> {
    let dir = tempfile::tempdir()?;
    let to = dir.path().join("copy.db");
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let wal = Path::new(&wal);
    for _ in 0..COPIES {
        let before = state(anchor, path, wal);
        io::copy(&mut open(anchor, path)?, &mut File::create(&to)?)?;
        let log = dir.path().join("copy.db-wal");
        if with_log {
            match open(anchor, wal) {
                Ok(mut from) => drop(io::copy(&mut from, &mut File::create(&log)?)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if state(anchor, path, wal) == before {
            return Ok(Copy {
                _dir: dir,
                path: to,
            });
        }
    }
    Err(io::Error::other(
        "it was written to each time it was being copied",
    ))
}

/// Sizes and times of the database and its log: the same before and after means nobody wrote in between.
fn state(anchor: &OwnedFd, path: &Path, wal: &Path) -> Vec<Option<(u64, std::time::SystemTime)>> {
    [path, wal]
        .into_iter()
        .map(|path| {
            let metadata = open(anchor, path).ok()?.metadata().ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        })
        .collect()
}

fn read(copy: &Copy) -> SidecarFacts {
    let result = Connection::open(&copy.path).and_then(|connection| {
        let integrity: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let tables: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut rows = TableRows::new();
        for table in tables {
            let quoted = table.replace('"', "\"\"");
            let counted =
                connection.query_row(&format!("SELECT count(*) FROM \"{quoted}\""), [], |row| {
                    row.get::<_, i64>(0)
                });
            // A virtual table whose module is not built in cannot be counted, and is not the agent's history.
            if let Ok(count) = counted {
                rows.insert(table, u64::try_from(count).unwrap_or(0));
            }
        }
        Ok(SidecarFacts { integrity, rows })
    });
    result.unwrap_or_else(|error| unreadable(&error))
}
