//! The duties of a PID 1: take signals, reap every child, its own and the orphans it inherits.

use std::sync::mpsc::Sender;
use std::thread;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::crash;
use crate::init::Notice;

/// The signals PID 1 takes itself. Blocked in every thread; children start with none blocked, which the
/// standard library sees to.
pub(crate) fn block_signals() -> Result<SigSet, Errno> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.add(crash::END);
    signals.add(crash::DEVOUR);
    signals.thread_block()?;
    Ok(signals)
}

/// Tells `notices` of every child that ends and of every request to stop.
pub(crate) fn watch(signals: SigSet, notices: Sender<Notice>) {
    thread::spawn(move || {
        loop {
            let notice = match signals.wait() {
                Ok(Signal::SIGCHLD) => {
                    reap(&notices);
                    continue;
                }
                Ok(signal @ (crash::END | crash::DEVOUR)) => crash::obey(signal),
                Ok(signal) => Notice::AskedToStop(signal),
                Err(_) => continue,
            };
            if notices.send(notice).is_err() {
                return;
            }
        }
    });
}

/// One SIGCHLD may stand for several children.
fn reap(notices: &Sender<Notice>) {
    loop {
        let (pid, code) = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Ok(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Err(signal)),
            Ok(WaitStatus::StillAlive) | Err(_) => return,
            Ok(_) => continue,
        };
        if notices.send(Notice::ChildEnded { pid, code }).is_err() {
            return;
        }
    }
}
