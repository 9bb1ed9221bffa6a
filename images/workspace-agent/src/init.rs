//! PID 1: starts the workspace's scripts, speaks of them on standard output, stops within a deadline.
//!
//! One thread owns all state and takes [`Notice`]s; readers, the reaper and the clock only send.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use reprise_model::{AgentEvent, InitSpec, ScriptId, ScriptPhase};
use thiserror::Error;
use uuid::Uuid;

use crate::damage;
use crate::forward::{self, Outside};
use crate::home;
use crate::probe;
use crate::processes;
use crate::reaper;
use crate::script::{self, Running};
use crate::stopwatch::Stopwatch;

/// How long a script that ended may leave its output open, and how long one that was told to go may stay:
/// ten seconds each, as in Coder's agent.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the threads of PID 1 tell its main one.
pub(crate) enum Notice {
    Say(AgentEvent),
    StreamClosed(ScriptId),
    ChildEnded { pid: Pid, code: Result<i32, Signal> },
    AskedToStop(Signal),
}

/// Why PID 1 could not take up its duties.
#[derive(Debug, Error)]
pub enum InitError {
    /// The spec is not there.
    #[error("cannot read the spec {}: {source}", path.display())]
    Unreadable {
        /// Where it was looked for.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The spec is not one.
    #[error("the spec {} is not what this program takes: {source}", path.display())]
    Malformed {
        /// Where it lies.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// The gateway's address cannot be listened on.
    #[error("cannot listen on the gateway's address {from}: {source}")]
    Forward {
        /// The address.
        from: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Signals cannot be taken.
    #[error("cannot block signals: {0}")]
    Signals(#[from] Errno),
}

struct Init {
    spec: InitSpec,
    notices: Receiver<Notice>,
    sender: Sender<Notice>,
    running: Vec<Running>,
    failed: usize,
}

pub(crate) fn main(
    path: &Path,
    forwarding: Option<(SocketAddr, Outside)>,
) -> Result<(), InitError> {
    let text = fs::read(path).map_err(|source| InitError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let spec: InitSpec = serde_json::from_slice(&text).map_err(|source| InitError::Malformed {
        path: path.to_owned(),
        source,
    })?;
    let signals = reaper::block_signals()?;
    if let Some((from, to)) = forwarding {
        forward::start(from, to).map_err(|source| InitError::Forward { from, source })?;
    }
    let (sender, notices) = channel();
    reaper::watch(signals, sender.clone());
    Init {
        spec,
        notices,
        sender,
        running: Vec::new(),
        failed: 0,
    }
    .live();
    Ok(())
}

impl Init {
    fn live(mut self) {
        say(&AgentEvent::Booted {
            processes: processes::others().len(),
        });
        if let Err(message) = self.prepare_home() {
            // In a home that is not the one asked for nothing could be measured: PID 1 ends, and says why.
            say(&AgentEvent::Trouble { message });
            return;
        }
        if let Some(snapshot) = self.look_at_home() {
            say(&AgentEvent::HomeFound { snapshot });
        }
        let signal = self.start_scripts().or_else(|| self.wait_for_signal());
        self.stop(signal.unwrap_or(Signal::SIGTERM));
    }

    /// Removes from the home what shall not come back, and furnishes it if it is new.
    fn prepare_home(&self) -> Result<(), String> {
        let home = Path::new(&self.spec.home);
        if let Some(keep) = &self.spec.keep_only {
            home::keep_only(home, keep)
                .map_err(|error| format!("cannot prune the home: {error}"))?;
            say(&AgentEvent::HomePruned { kept: keep.clone() });
        }
        if let Some(damage) = &self.spec.damage {
            let files = damage::inflict(home, damage)
                .map_err(|error| format!("cannot damage the session's files: {error}"))?;
            say(&AgentEvent::HomeDamaged { files });
        }
        home::make_places(&self.spec.places)
            .map_err(|error| format!("cannot make the places asked for: {error}"))?;
        for (path, content) in &self.spec.written {
            let file = home.join(path);
            file.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&file, content))
                .map_err(|error| format!("cannot write {path}: {error}"))?;
        }
        match &self.spec.files {
            Some(files) => home::furnish(home, files)
                .map_err(|error| format!("cannot furnish the new home: {error}")),
            None => Ok(()),
        }
    }

    fn look_at_home(&self) -> Option<Box<reprise_model::Snapshot>> {
        if !self.spec.probe_home {
            return None;
        }
        match probe::probe(Path::new(&self.spec.home)) {
            Ok(snapshot) => Some(Box::new(snapshot)),
            Err(error) => {
                say(&AgentEvent::Trouble {
                    message: format!("cannot look at the home: {error}"),
                });
                None
            }
        }
    }

    /// Runs all start scripts together. Gives a signal if one came before they ended.
    fn start_scripts(&mut self) -> Option<Signal> {
        self.launch(ScriptPhase::Start);
        while !self.running.is_empty() {
            if let Some(signal) = self.take(None) {
                return Some(signal);
            }
        }
        say(&AgentEvent::StartFinished {
            failed: self.failed,
        });
        None
    }

    fn wait_for_signal(&mut self) -> Option<Signal> {
        loop {
            if let Some(signal) = self.take(None) {
                return Some(signal);
            }
        }
    }

    fn stop(&mut self, signal: Signal) {
        say(&AgentEvent::Stopping {
            signal: signal.to_string(),
        });
        // Start scripts that still run are left to themselves: the end of PID 1 ends them.
        self.running.clear();
        let deadline = Instant::now() + Duration::from_secs(self.spec.stop_deadline);
        let watch = Stopwatch::start(
            PathBuf::from(&self.spec.home),
            self.spec.watch.clone(),
            self.sender.clone(),
        );
        self.launch(ScriptPhase::Stop);
        while !self.running.is_empty() {
            if Instant::now() >= deadline {
                for script in std::mem::take(&mut self.running) {
                    ended(
                        &script,
                        None,
                        Some(format!(
                            "still running when the stop deadline of {} s was over",
                            self.spec.stop_deadline
                        )),
                    );
                }
                break;
            }
            self.take(Some(deadline));
        }
        drop(watch);
        while let Ok(notice) = self.notices.try_recv() {
            if let Notice::Say(event) = notice {
                say(&event);
            }
        }
        let left = processes::command_lines();
        if let Some(snapshot) = self.look_at_home() {
            say(&AgentEvent::HomeLeft { snapshot });
        }
        say(&AgentEvent::Stopped { left });
    }

    fn launch(&mut self, phase: ScriptPhase) {
        let spec = self.spec.clone();
        for script in &spec.scripts {
            let wanted = match phase {
                ScriptPhase::Start => script.run_on_start,
                ScriptPhase::Stop => script.run_on_stop,
            };
            if !wanted {
                continue;
            }
            let id = ScriptId(Uuid::new_v4());
            let data_dir = script::data_base(&spec.env).join(id.0.to_string());
            say(&AgentEvent::ScriptStarted {
                id,
                name: script.display_name.clone(),
                phase,
                data_dir: data_dir.display().to_string(),
            });
            match script::start(id, script, phase, &spec, &data_dir, &self.sender) {
                Ok(running) => self.running.push(running),
                Err(problem) => {
                    self.failed += 1;
                    say(&AgentEvent::ScriptEnded {
                        id,
                        name: script.display_name.clone(),
                        phase,
                        code: None,
                        problem: Some(problem),
                        millis: 0,
                    });
                }
            }
        }
    }

    /// Takes one notice, or acts on the time that has passed. Gives the signal if one came.
    fn take(&mut self, deadline: Option<Instant>) -> Option<Signal> {
        let next = self
            .running
            .iter()
            .filter_map(Running::next_deadline)
            .chain(deadline)
            .min();
        let notice = match next {
            None => self.notices.recv().ok(),
            Some(at) => self
                .notices
                .recv_timeout(at.saturating_duration_since(Instant::now()))
                .ok(),
        };
        match notice {
            Some(Notice::Say(event)) => say(&event),
            Some(Notice::StreamClosed(id)) => {
                if let Some(script) = self.running.iter_mut().find(|script| script.id == id) {
                    script.open_streams -= 1;
                }
            }
            Some(Notice::ChildEnded { pid, code }) => {
                if let Some(script) = self.running.iter_mut().find(|script| script.pid == pid) {
                    let code = code.map_err(|signal| format!("killed by {signal}"));
                    script.ended = Some((code, Instant::now()));
                }
            }
            Some(Notice::AskedToStop(signal)) => return Some(signal),
            None => {}
        }
        let mut failed = 0;
        self.running.retain_mut(|script| match script.judge() {
            None => true,
            Some((code, problem)) => {
                failed += usize::from(code != Some(0) || problem.is_some());
                ended(script, code, problem);
                false
            }
        });
        self.failed += failed;
        None
    }
}

impl Running {
    /// When something must be done about this script though nobody says anything.
    fn next_deadline(&self) -> Option<Instant> {
        match (&self.ended, self.interrupted) {
            (Some((_, at)), _) => Some(*at + PATIENCE),
            (None, Some(at)) => Some(at + PATIENCE),
            (None, None) => self.timeout.map(|timeout| self.began + timeout),
        }
    }

    /// Whether the script is over: its code, and what was wrong.
    fn judge(&mut self) -> Option<(Option<i32>, Option<String>)> {
        let now = Instant::now();
        let late = self
            .interrupted
            .and(self.timeout)
            .map(|timeout| format!("timed out after {} s", timeout.as_secs()));
        if let Some((code, at)) = &self.ended {
            let (code, killed) = match code {
                Ok(code) => (Some(*code), None),
                Err(killed) => (None, Some(killed.clone())),
            };
            if self.open_streams == 0 {
                return Some((code, late.or(killed)));
            }
            return (now >= *at + PATIENCE).then(|| {
                let open = "it ended but left its output open: a process it started still holds it; redirect that process's output";
                (code, Some(late.or(killed).unwrap_or_else(|| open.to_owned())))
            });
        }
        match self.interrupted {
            None if self
                .timeout
                .is_some_and(|timeout| now >= self.began + timeout) =>
            {
                let _ = killpg(self.pid, Signal::SIGHUP);
                self.interrupted = Some(now);
                None
            }
            Some(at) if now >= at + PATIENCE => {
                let _ = killpg(self.pid, Signal::SIGKILL);
                Some((None, late))
            }
            _ => None,
        }
    }
}

fn ended(script: &Running, code: Option<i32>, problem: Option<String>) {
    say(&AgentEvent::ScriptEnded {
        id: script.id,
        name: script.name.clone(),
        phase: script.phase,
        code,
        problem,
        millis: u64::try_from(script.began.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
}

/// Nobody may be listening any more; the scripts must go on all the same.
fn say(event: &AgentEvent) {
    let mut out = io::stdout().lock();
    let line = serde_json::to_string(event).expect("an event is JSON");
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
