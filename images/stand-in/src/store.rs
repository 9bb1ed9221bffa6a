//! Where the reference agent keeps its sessions: an `SQLite` database in WAL mode.
//!
//! The conversation is moved into the main file after each turn; the journal of activity stays in the log until the next one.
//! So a lost log costs rows, but not the conversation: only a look at the database itself can tell.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, params};
use thiserror::Error;

use crate::conversation::Said;
use crate::fault::{self, Fault};

/// What can be wrong with the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or directory beside it.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// `SQLite` refused.
    #[error("the session database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A message is damaged.
    #[error("a message in the session database is no JSON: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// The sessions.
pub(crate) struct Store {
    dir: PathBuf,
    connection: Connection,
}

const DATABASE: &str = "sessions.db";

/// What stands for a login: a file that says nothing.
const LOGIN: &str = "login";

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, source }
}

fn connect(dir: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(dir.join(DATABASE))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA wal_autocheckpoint = 0;
         CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session TEXT NOT NULL, body TEXT NOT NULL);
         CREATE TABLE IF NOT EXISTS activity (id INTEGER PRIMARY KEY, session TEXT NOT NULL, what TEXT NOT NULL);",
    )?;
    // What is damaged shows here, and not in the middle of a turn.
    connection.query_row("PRAGMA quick_check", [], |row| {
        let says: String = row.get(0)?;
        match says.as_str() {
            "ok" => Ok(()),
            _ => Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
                Some(says),
            )),
        }
    })?;
    Ok(connection)
}

impl Store {
    /// Opens the store in `REFERENCE_DATA_DIR`, or below the home. One that is damaged is set aside: without its sessions the
    /// agent is still of use.
    pub(crate) fn open() -> Result<Self, StoreError> {
        let dir = std::env::var_os("REFERENCE_DATA_DIR").map_or_else(
            || {
                let home = std::env::var_os("HOME").unwrap_or_else(|| "/".into());
                Path::new(&home).join(".local/share/reference-agent")
            },
            PathBuf::from,
        );
        std::fs::create_dir_all(&dir).map_err(at(&dir))?;
        let connection = match connect(&dir) {
            Err(error) if damaged(&error) && !fault::is(Fault::DamagedStoreIsFatal) => {
                eprintln!("reference-agent: the session database is set aside: {error}");
                set_aside(&dir)?;
                connect(&dir)?
            }
            connection => connection?,
        };
        Ok(Self { dir, connection })
    }

    pub(crate) fn said(&self, session: &str) -> Result<Vec<Said>, StoreError> {
        let mut query = self
            .connection
            .prepare("SELECT body FROM messages WHERE session = ? ORDER BY id")?;
        let bodies: Vec<String> = query
            .query_map([session], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        bodies
            .iter()
            .map(|body| Ok(serde_json::from_str(body)?))
            .collect()
    }

    /// What was said last in any session but this one.
    pub(crate) fn newest_but(&self, session: &str) -> Result<Vec<Said>, StoreError> {
        let newest: Option<String> = self.connection.query_row(
            "SELECT (SELECT session FROM messages WHERE session <> ? ORDER BY id DESC LIMIT 1)",
            [session],
            |row| row.get(0),
        )?;
        newest.map_or_else(|| Ok(Vec::new()), |newest| self.said(&newest))
    }

    pub(crate) fn append(&self, session: &str, said: &Said) -> Result<(), StoreError> {
        let body = serde_json::to_string(said)?;
        self.connection.execute(
            "INSERT INTO messages (session, body) VALUES (?, ?)",
            params![session, body],
        )?;
        Ok(())
    }

    /// Ends a turn: the conversation goes to the main file, and a note of the turn to the log.
    pub(crate) fn end_turn(&self, session: &str) -> Result<(), StoreError> {
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        self.connection.execute(
            "INSERT INTO activity (session, what) VALUES (?, 'turn')",
            [session],
        )?;
        Ok(())
    }

    /// Leaves what a login leaves.
    pub(crate) fn log_in(&self) -> Result<(), StoreError> {
        self.write(LOGIN, b"nobody is logged in anywhere\n")
    }

    pub(crate) fn log_out(&self) -> Result<(), StoreError> {
        remove(&self.dir.join(LOGIN))
    }

    /// Keeps what nobody needs.
    pub(crate) fn swell(&self) -> Result<(), StoreError> {
        let copies = std::fs::read_dir(&self.dir).map_err(at(&self.dir))?.count();
        let name = format!("copy-{copies}");
        self.write(&name, &vec![0; 3_000_000])
    }

    pub(crate) fn note(&self, text: &str) -> Result<(), StoreError> {
        self.write("note", text.as_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.dir.join(name);
        std::fs::write(&path, bytes).map_err(at(&path))
    }
}

fn damaged(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

/// Gives the database another name; its log and index mean nothing without it.
fn set_aside(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(DATABASE);
    std::fs::rename(&path, dir.join("damaged.db")).map_err(at(&path))?;
    for sidecar in ["-wal", "-shm"] {
        remove(&dir.join(format!("{DATABASE}{sidecar}")))?;
    }
    Ok(())
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}
