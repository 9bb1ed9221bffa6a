//! Where the reference agent keeps its sessions: an `SQLite` database in WAL mode.
//!
//! The conversation is moved into the main file after each turn; the journal of activity stays in the log until the next one.
//! So a lost log costs rows, but not the conversation: only a look at the database itself can tell.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::Value;
use thiserror::Error;

/// What can be wrong with the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Its directory cannot be made.
    #[error("cannot make {}: {source}", path.display())]
    Directory {
        /// The directory.
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
    connection: Connection,
}

impl Store {
    /// Opens the store in `REFERENCE_DATA_DIR`, or below the home.
    pub(crate) fn open() -> Result<Self, StoreError> {
        let dir = std::env::var_os("REFERENCE_DATA_DIR").map_or_else(
            || {
                let home = std::env::var_os("HOME").unwrap_or_else(|| "/".into());
                Path::new(&home).join(".local/share/reference-agent")
            },
            PathBuf::from,
        );
        std::fs::create_dir_all(&dir).map_err(|source| StoreError::Directory {
            path: dir.clone(),
            source,
        })?;
        let connection = Connection::open(dir.join("sessions.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session TEXT NOT NULL, body TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS activity (id INTEGER PRIMARY KEY, session TEXT NOT NULL, what TEXT NOT NULL);",
        )?;
        Ok(Self { connection })
    }

    pub(crate) fn messages(&self, session: &str) -> Result<Vec<Value>, StoreError> {
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

    pub(crate) fn append(&self, session: &str, message: &Value) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO messages (session, body) VALUES (?, ?)",
            params![session, message.to_string()],
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
}
