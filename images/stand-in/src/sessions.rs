//! Where the agents that are played keep their sessions: files at the documented places, of the documented kind, with a
//! conversation of our own words in them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};
use thiserror::Error;
use uuid::Uuid;

use crate::conversation::Said;

/// What can be wrong with a session's files.
#[derive(Debug, Error)]
pub(crate) enum SessionError {
    /// A file.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A database.
    #[error("the session database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// How an agent keeps its sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layout {
    /// A file of JSON lines for each session.
    Lines {
        /// The directory with all of them, below the home.
        root: &'static str,
        /// A session's file below it: `{id}`, `{day}` (2026/11/21), `{slug}` and `{name}` (the directory, in Claude Code's
        /// and in Gemini's way of writing it).
        file: &'static str,
        /// Its first line: the session's head.
        head: fn(&str, &str) -> Option<Value>,
        /// What was said, as a line.
        line: fn(&str, &str, &Said) -> Value,
    },
    /// A JSON document for each session, written anew each time.
    Documents {
        /// The directory with all of them, below the home.
        root: &'static str,
    },
    /// An `SQLite` database in WAL mode.
    Database {
        /// Its path below the home.
        path: &'static str,
    },
    /// A Markdown file in the directory the agent works in.
    Markdown {
        /// Its name.
        file: &'static str,
    },
}

/// The sessions of one directory.
pub(crate) struct Sessions {
    layout: Layout,
    home: PathBuf,
    cwd: String,
}

fn at(path: &Path) -> impl Fn(io::Error) -> SessionError {
    let path = path.to_owned();
    move |source| SessionError::Io {
        path: path.clone(),
        source,
    }
}

impl Sessions {
    pub(crate) fn new(layout: Layout, home: PathBuf, cwd: &Path) -> Self {
        Self {
            layout,
            home,
            cwd: cwd.display().to_string(),
        }
    }

    /// A new session's id: a name where the agent's user gave one.
    pub(crate) fn begin(&self, name: Option<String>) -> String {
        name.unwrap_or_else(|| Uuid::new_v4().to_string())
    }

    /// The last session of this directory.
    pub(crate) fn latest(&self) -> Result<Option<String>, SessionError> {
        Ok(match self.layout {
            Layout::Lines { .. } | Layout::Documents { .. } => self
                .files()?
                .into_iter()
                .max_by_key(|(_, changed, path)| (*changed, path.clone()))
                .map(|(id, ..)| id),
            Layout::Database { path } => match self.open(path, false)? {
                None => None,
                Some(database) => database
                    .query_row(
                        "SELECT id FROM sessions WHERE directory = ? ORDER BY updated DESC LIMIT 1",
                        [&self.cwd],
                        |row| row.get(0),
                    )
                    .optional()?,
            },
            Layout::Markdown { file } => Path::new(&self.cwd)
                .join(file)
                .exists()
                .then(|| file.to_owned()),
        })
    }

    /// What was said in a session; `None` if there is none of that id.
    pub(crate) fn load(&self, id: &str) -> Result<Option<Vec<Said>>, SessionError> {
        match self.layout {
            Layout::Lines { .. } | Layout::Documents { .. } => {
                let found = self.files()?.into_iter().find(|(known, ..)| known == id);
                let Some((_, _, path)) = found else {
                    return Ok(None);
                };
                let text = fs::read_to_string(&path).map_err(at(&path))?;
                Ok(Some(match self.layout {
                    Layout::Documents { .. } => {
                        let document: Value = serde_json::from_str(&text).unwrap_or_default();
                        serde_json::from_value(document["messages"].clone()).unwrap_or_default()
                    }
                    _ => text
                        .lines()
                        .filter_map(|line| serde_json::from_str(line).ok())
                        .filter_map(said)
                        .collect(),
                }))
            }
            Layout::Database { path } => {
                let Some(database) = self.open(path, false)? else {
                    return Ok(None);
                };
                let mut query =
                    database.prepare("SELECT body FROM messages WHERE session = ? ORDER BY id")?;
                let bodies: Vec<String> = query
                    .query_map([id], |row| row.get(0))?
                    .collect::<Result<_, _>>()?;
                let said: Vec<Said> = bodies
                    .iter()
                    .filter_map(|body| serde_json::from_str(body).ok())
                    .collect();
                Ok((!said.is_empty()).then_some(said))
            }
            Layout::Markdown { file } => {
                let path = Path::new(&self.cwd).join(file);
                match fs::read_to_string(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    text => Ok(Some(from_markdown(&text.map_err(at(&path))?))),
                }
            }
        }
    }

    /// Adds to a session.
    pub(crate) fn append(&self, id: &str, new: &Said) -> Result<(), SessionError> {
        match self.layout {
            Layout::Lines {
                root,
                file,
                head,
                line,
            } => {
                let known = self.files()?.into_iter().find(|(known, ..)| known == id);
                let path = match known {
                    Some((_, _, path)) => path,
                    None => {
                        let now = jiff::Zoned::now();
                        let filled = file
                            .replace("{id}", id)
                            .replace("{day}", &now.strftime("%Y/%m/%d").to_string())
                            .replace("{time}", &now.strftime("%Y-%m-%dT%H-%M").to_string())
                            .replace("{slug}", &slug(&self.cwd))
                            .replace("{name}", self.cwd.rsplit('/').next().unwrap_or("project"));
                        self.home.join(root).join(filled)
                    }
                };
                make_parent(&path)?;
                let mut file = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&path)
                    .map_err(at(&path))?;
                let mut text = String::new();
                if file.metadata().map_err(at(&path))?.len() == 0
                    && let Some(head) = head(id, &self.cwd)
                {
                    text = format!("{head}\n");
                }
                text.push_str(&format!("{}\n", line(id, &self.cwd, new)));
                file.write_all(text.as_bytes()).map_err(at(&path))
            }
            Layout::Documents { root } => {
                let path = self.home.join(root).join(format!("{id}.json"));
                make_parent(&path)?;
                let mut all = self.load(id)?.unwrap_or_default();
                all.push(new.clone());
                let document = json!({"id": id, "cwd": self.cwd, "messages": all});
                fs::write(&path, document.to_string()).map_err(at(&path))
            }
            Layout::Database { path } => {
                let Some(mut database) = self.open(path, true)? else {
                    return Ok(());
                };
                let body = serde_json::to_string(new).expect("what was said is JSON");
                let change = database.transaction()?;
                change.execute(
                    "INSERT INTO sessions (id, directory, updated) VALUES (?1, ?2, (SELECT COALESCE(MAX(updated), 0) + 1 FROM sessions))
                     ON CONFLICT (id) DO UPDATE SET updated = excluded.updated",
                    params![id, self.cwd],
                )?;
                change.execute(
                    "INSERT INTO messages (session, body) VALUES (?, ?)",
                    params![id, body],
                )?;
                Ok(change.commit()?)
            }
            Layout::Markdown { file } => {
                let path = Path::new(&self.cwd).join(file);
                let text = match new {
                    Said::User { text } => {
                        format!("\n#### {}  \n", text.replace('\n', "  \n#### "))
                    }
                    Said::Model { text } => format!("\n{text}\n"),
                    Said::Call { .. } | Said::Output { .. } => return Ok(()),
                };
                let mut file = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&path)
                    .map_err(at(&path))?;
                file.write_all(text.as_bytes()).map_err(at(&path))
            }
        }
    }

    /// Every session file of this directory: id, time of change, path.
    fn files(&self) -> Result<Vec<(String, SystemTime, PathBuf)>, SessionError> {
        let (Layout::Lines { root, .. } | Layout::Documents { root }) = self.layout else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let mut left = vec![self.home.join(root)];
        while let Some(dir) = left.pop() {
            let entries = match fs::read_dir(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(at(&dir))?,
            };
            for entry in entries {
                let entry = entry.map_err(at(&dir))?;
                let path = entry.path();
                let meta = entry.metadata().map_err(at(&path))?;
                if meta.is_dir() {
                    left.push(path);
                } else if path
                    .extension()
                    .is_some_and(|end| end == "jsonl" || end == "json")
                    && let Some(id) = self.owner(&path)
                {
                    found.push((id, meta.modified().map_err(at(&path))?, path));
                }
            }
        }
        Ok(found)
    }

    /// The id of the session in a file, if it is one of this directory.
    fn owner(&self, path: &Path) -> Option<String> {
        let mut first = String::new();
        BufReader::new(File::open(path).ok()?)
            .read_line(&mut first)
            .ok()?;
        let head: Value = serde_json::from_str(&first).ok()?;
        let part = [&head["payload"], &head["data"], &head]
            .into_iter()
            .find(|part| part["cwd"].is_string())?;
        if part["cwd"] != self.cwd {
            return None;
        }
        let id = ["sessionId", "id"]
            .iter()
            .find_map(|name| part[*name].as_str())?;
        Some(id.to_owned())
    }

    fn open(&self, path: &str, make: bool) -> Result<Option<Connection>, SessionError> {
        let path = self.home.join(path);
        if !make && !path.exists() {
            return Ok(None);
        }
        make_parent(&path)?;
        let database = Connection::open(&path)?;
        database.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, directory TEXT NOT NULL, updated INTEGER NOT NULL);
             CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session TEXT NOT NULL, body TEXT NOT NULL);",
        )?;
        Ok(Some(database))
    }
}

fn make_parent(path: &Path) -> Result<(), SessionError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(at(parent))
}

/// What a line of any agent's says.
fn said(line: Value) -> Option<Said> {
    let body = ["message", "payload", "data"]
        .iter()
        .map(|name| &line[*name])
        .find(|body| body["who"].is_string())?;
    serde_json::from_value(body.clone()).ok()
}

/// A directory as Claude Code writes it in a path.
fn slug(cwd: &str) -> String {
    cwd.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}

/// What can be had again of a conversation from Aider's Markdown: the user's words stand behind `####`.
fn from_markdown(text: &str) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let new = match line.strip_prefix("#### ") {
            Some(words) => Said::user(words.trim_end()),
            None => Said::model(line.trim_end()),
        };
        match (said.last_mut(), new) {
            (Some(Said::User { text }), Said::User { text: more })
            | (Some(Said::Model { text }), Said::Model { text: more }) => {
                text.push('\n');
                text.push_str(&more);
            }
            (_, new) => said.push(new),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personality::PERSONALITIES;

    #[test]
    fn every_personality_finds_its_last_session_again() {
        for personality in PERSONALITIES {
            let home = tempfile::tempdir().expect("a directory can be made");
            let sessions =
                |cwd: &Path| Sessions::new(personality.layout, home.path().to_owned(), cwd);
            let here = sessions(home.path());
            let name = personality.command;
            assert_eq!(here.latest().expect("it can be looked for"), None, "{name}");
            let id = here.begin(None);
            let all = [
                Said::user("hello"),
                Said::model("good day"),
                Said::user("bye"),
            ];
            for new in &all {
                here.append(&id, new).expect("it can be written");
            }
            let latest = here
                .latest()
                .expect("it can be looked for")
                .expect("one is there");
            let loaded = here.load(&latest).expect("it can be read");
            assert_eq!(loaded.as_deref(), Some(&all[..]), "{name}");
            let elsewhere = home.path().join("elsewhere");
            fs::create_dir(&elsewhere).expect("a directory can be made");
            let other = sessions(&elsewhere).latest().expect("it can be looked for");
            assert_eq!(other, None, "{name}");
        }
    }
}
