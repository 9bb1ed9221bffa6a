//! Runs a command inside a sandbox.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, geteuid};
use serde::{Deserialize, Serialize};

use super::world::{WorldError, at, become_user};

/// The exit code that, with [`COMPLAINT`] on standard error, means that the command did not run.
pub(crate) const CANNOT_ENTER: i32 = 125;

/// How a complaint begins.
pub(crate) const COMPLAINT: &str = "reprise sandbox: ";

/// What to run, and in which sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The sandbox's PID 1, as this machine numbers it.
    pub(crate) init: i32,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    pub(crate) privileged: bool,
}

/// The role of going in; `order` says what and where, in JSON.
#[must_use]
pub fn main(order: &str) -> ExitCode {
    match enter(order) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            eprintln!("{COMPLAINT}{error}");
            ExitCode::from(u8::try_from(CANNOT_ENTER).expect("it is 125"))
        }
    }
}

fn enter(order: &str) -> Result<i32, WorldError> {
    let order: Order = serde_json::from_str(order)
        .map_err(|error| at("understand the order")(io::Error::from(error)))?;
    let root = geteuid().is_root();
    let namespace = |name: &str| {
        let path = format!("/proc/{}/ns/{name}", order.init);
        File::open(&path).map_err(at(format!("open {path}")))
    };
    let of = |file: io::Result<std::fs::Metadata>| file.map(|file| file.ino()).ok();
    let user = namespace("user")?;
    let own = File::open("/proc/self/ns/user").map_err(at("open /proc/self/ns/user"))?;
    // All are opened before the first is entered: afterwards /proc is another.
    let others = [
        (namespace("pid")?, CloneFlags::CLONE_NEWPID),
        (namespace("net")?, CloneFlags::CLONE_NEWNET),
        (namespace("ipc")?, CloneFlags::CLONE_NEWIPC),
        (namespace("uts")?, CloneFlags::CLONE_NEWUTS),
        (namespace("mnt")?, CloneFlags::CLONE_NEWNS),
    ];
    if of(user.metadata()) != of(own.metadata()) {
        setns(&user, CloneFlags::CLONE_NEWUSER).map_err(at("enter the user namespace"))?;
    }
    for (file, flag) in &others {
        setns(file, *flag).map_err(at("enter a namespace"))?;
    }
    // SAFETY: this process has a single thread. Only a child is in the pid namespace.
    match unsafe { fork() }.map_err(at("fork"))? {
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(code),
                Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(128 + signal as i32),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(at("wait for the command")(error)),
            }
        },
        ForkResult::Child => {
            let error = run(&order, root);
            eprintln!("{COMPLAINT}{error}");
            std::process::exit(CANNOT_ENTER);
        }
    }
}

/// Becomes the command; returns only with an error.
fn run(order: &Order, root: bool) -> WorldError {
    let prepare = || {
        if root && !order.privileged {
            become_user()?;
        }
        prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
        // Whoever asked for the command may be gone; then it must go, too.
        prctl::set_pdeathsig(Signal::SIGKILL).map_err(at("bind to the caller"))
    };
    if let Err(error) = prepare() {
        return error;
    }
    let Some((program, args)) = order.argv.split_first() else {
        return at("run a command")(io::Error::other("none was named"));
    };
    let error = Command::new(program)
        .args(args)
        .env_clear()
        .envs(&order.env)
        .current_dir(&order.cwd)
        .exec();
    at(format!("run {program} in {}", order.cwd.display()))(error)
}
