//! Watches what happens while the stop scripts run: when AgentAPI's state is written, and when AgentAPI is gone.
//!
//! Both are looked at many times a second: neither a file's writer nor a process that is nobody's child tells of itself.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc::Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use reprise_model::AgentEvent;

use crate::init::Notice;
use crate::processes;

/// The program whose end is told of.
const PROGRAM: &str = "agentapi";

const PAUSE: Duration = Duration::from_millis(20);

/// A watch that ends when it is dropped, after a last look.
pub(crate) struct Stopwatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stopwatch {
    /// Watches `files` below `home`.
    pub(crate) fn start(home: PathBuf, files: Vec<String>, notices: Sender<Notice>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let mut look = Look {
            known: BTreeMap::new(),
            there: false,
            home,
            files,
        };
        // Before the first stop script: what is there now is no news.
        look.first();
        let thread = thread::spawn(move || {
            loop {
                let last = ends.load(Ordering::SeqCst);
                for event in look.news() {
                    // Nobody is left to be told.
                    if notices.send(Notice::Say(event)).is_err() {
                        return;
                    }
                }
                if last {
                    return;
                }
                thread::sleep(PAUSE);
            }
        });
        Self {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and there is nothing to do about it if it did.
            let _ = thread.join();
        }
    }
}

struct Look {
    home: PathBuf,
    files: Vec<String>,
    /// Inode, time of change and size of each file.
    known: BTreeMap<String, Option<(u64, i64, i64, u64)>>,
    there: bool,
}

impl Look {
    fn first(&mut self) {
        self.there = processes::runs(PROGRAM);
        for file in &self.files {
            self.known.insert(file.clone(), self.state(file));
        }
    }

    fn state(&self, file: &str) -> Option<(u64, i64, i64, u64)> {
        let meta = fs::metadata(self.home.join(file)).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size()))
    }

    fn news(&mut self) -> Vec<AgentEvent> {
        let mut news = Vec::new();
        for file in &self.files {
            let now = self.state(file);
            if let Some((.., size)) = now
                && self.known.get(file) != Some(&now)
            {
                news.push(AgentEvent::FileWritten {
                    path: file.clone(),
                    size,
                });
            }
            self.known.insert(file.clone(), now);
        }
        let there = processes::runs(PROGRAM);
        if self.there && !there {
            news.push(AgentEvent::ProgramEnded {
                name: PROGRAM.to_owned(),
            });
        }
        self.there = there;
        news
    }
}
