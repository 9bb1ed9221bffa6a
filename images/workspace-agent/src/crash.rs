//! The end of everything at once, from inside: for an engine that can kill a container only with a warning.
//!
//! PID 1 of a namespace cannot be killed from within it, but it can end itself; the kernel then kills every other process as
//! it would after a SIGKILL from outside.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// PID 1 ends at once, without a word.
pub(crate) const END: Signal = Signal::SIGUSR2;

/// PID 1 takes all the memory there is, until the kernel ends it.
pub(crate) const DEVOUR: Signal = Signal::SIGUSR1;

/// What a process that was killed leaves as its exit code.
const KILLED: i32 = 137;

/// Asks PID 1 for it.
pub(crate) fn ask(by_memory: bool) -> Result<(), Errno> {
    kill(Pid::from_raw(1), if by_memory { DEVOUR } else { END })
}

/// Does it, in PID 1.
pub(crate) fn obey(signal: Signal) -> ! {
    if signal == DEVOUR {
        let mut hoard: Vec<Vec<u8>> = Vec::new();
        while hoard.try_reserve(1).is_ok() {
            // Written to: memory that is only promised costs nothing.
            hoard.push(vec![1; 8 << 20]);
        }
    }
    std::process::exit(KILLED)
}
