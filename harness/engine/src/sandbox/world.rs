//! Makes a sandbox out of a fresh process: namespaces, network, mounts, and PID 1 inside.
//!
//! This process stays outside as the supervisor. It ends the sandbox when its standard input closes, so a sandbox
//! never outlives the program that started it, however that ended.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getegid, geteuid};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{handover, mounts};
use crate::{Missing, StartSpec, Uid as UserId};

/// What the supervisor is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) spec: StartSpec,
    /// The directory that is the home.
    pub(crate) volume: PathBuf,
}

/// Which step failed, and why.
#[derive(Debug, Error)]
#[error("{step}: {source}")]
pub(crate) struct WorldError {
    step: String,
    source: io::Error,
}

/// For `map_err`: names the step that failed.
pub(crate) fn at<E: Into<io::Error>>(step: impl Into<String>) -> impl FnOnce(E) -> WorldError {
    let step = step.into();
    move |source| WorldError {
        step,
        source: source.into(),
    }
}

const NAMESPACES: CloneFlags = CloneFlags::CLONE_NEWNS
    .union(CloneFlags::CLONE_NEWPID)
    .union(CloneFlags::CLONE_NEWNET)
    .union(CloneFlags::CLONE_NEWUTS)
    .union(CloneFlags::CLONE_NEWIPC);

fn namespaces() -> CloneFlags {
    if geteuid().is_root() {
        NAMESPACES
    } else {
        NAMESPACES | CloneFlags::CLONE_NEWUSER
    }
}

/// Tries the namespaces in a process of its own.
pub(crate) fn check() -> Result<(), Missing> {
    // SAFETY: the child calls unshare and _exit only, both async-signal-safe.
    let refused = match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            let code = match unshare(namespaces()) {
                Ok(()) => 0,
                Err(error) => error as i32,
            };
            // SAFETY: ends the child at once, without running what its parent registered.
            unsafe { nix::libc::_exit(code) }
        }
        Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, code)) => Errno::from_raw(code),
            _ => Errno::UnknownErrno,
        },
        Err(error) => error,
    };
    let set_to =
        |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let remedy = if geteuid().is_root() {
        "this container or machine does not let root make namespaces; run it with CAP_SYS_ADMIN, or use --engine docker"
    } else if set_to(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        "AppArmor forbids it to normal users: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, run as root, or use --engine docker"
    } else if set_to("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "`sudo sysctl kernel.unprivileged_userns_clone=1`, run as root, or use --engine docker"
    } else if set_to("/proc/sys/user/max_user_namespaces", "0") {
        "`sudo sysctl user.max_user_namespaces=15000`, run as root, or use --engine docker"
    } else {
        "run as root, or use --engine docker"
    };
    Err(Missing {
        what: format!("this machine refuses namespaces: {}", refused.desc()),
        remedy: remedy.to_owned(),
    })
}

/// The role of the supervisor; `dir` holds the plan and the place for the world.
#[must_use]
pub fn main(dir: &Path) -> ExitCode {
    match supervise(dir) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise(dir: &Path) -> Result<ExitCode, WorldError> {
    let text = fs::read(dir.join("plan.json")).map_err(at("read the plan"))?;
    let plan: Plan = serde_json::from_slice(&text)
        .map_err(|error| at("understand the plan")(io::Error::from(error)))?;
    let root = geteuid().is_root();
    let (uid, gid) = (geteuid(), getegid());
    unshare(namespaces()).map_err(at("make namespaces"))?;
    if !root {
        map_user(uid, gid)?;
    }
    raise_loopback().map_err(at("raise the loopback"))?;
    let listener = TcpListener::bind(plan.spec.gateway).map_err(at(format!(
        "open the gateway's socket {}",
        plan.spec.gateway
    )))?;
    // Before the child exists, so that its end cannot be missed. What PID 1 makes of it is its own business.
    let mut child_ended = SigSet::empty();
    child_ended.add(Signal::SIGCHLD);
    child_ended.thread_block().map_err(at("block SIGCHLD"))?;
    let (mut complaints, complain) = io::pipe().map_err(at("make a pipe"))?;
    // SAFETY: this process has a single thread, so the child may do anything.
    match unsafe { fork() }.map_err(at("fork"))? {
        ForkResult::Child => {
            drop(complaints);
            let Err(error) = become_init(&plan, &dir.join("world"), root);
            complain_of(complain, &error);
            // SAFETY: as above; nothing of the parent's may run here.
            unsafe { nix::libc::_exit(1) }
        }
        ForkResult::Parent { child } => {
            drop(complain);
            wait_until_up(&mut complaints)?;
            handover::send(child.as_raw(), &listener).map_err(at("hand out the socket"))?;
            drop(listener);
            stay_silent().map_err(at("open /dev/null"))?;
            outlive(child).map_err(at("watch over PID 1"))
        }
    }
}

fn complain_of(mut pipe: PipeWriter, error: &WorldError) {
    let _ = write!(pipe, "{error}");
}

/// The pipe closes when PID 1's program starts; until then it can carry a complaint.
fn wait_until_up(complaints: &mut PipeReader) -> Result<(), WorldError> {
    let mut complaint = String::new();
    complaints
        .read_to_string(&mut complaint)
        .map_err(at("wait for PID 1"))?;
    if complaint.is_empty() {
        Ok(())
    } else {
        Err(at("set up the sandbox")(io::Error::other(complaint)))
    }
}

/// Only PID 1 may hold the output pipes, so that their end is its end.
fn stay_silent() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for descriptor in [1, 2] {
        // SAFETY: dup2 onto this process's own standard descriptors.
        if unsafe { nix::libc::dup2(null.as_raw_fd(), descriptor) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Stays until PID 1 is gone, and kills it when standard input closes. One thread does both: a process whose
/// children live in another pid namespace cannot start threads.
fn outlive(init: Pid) -> Result<ExitCode, Errno> {
    let mut child_ended = SigSet::empty();
    child_ended.add(Signal::SIGCHLD);
    let ended = SignalFd::with_flags(&child_ended, SfdFlags::SFD_CLOEXEC)?;
    let stdin = io::stdin();
    let mut lifeline = Some(stdin.as_fd());
    loop {
        match waitpid(init, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => {
                return Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)));
            }
            Ok(WaitStatus::Signaled(..)) => return Ok(ExitCode::from(137)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        let mut watched = vec![PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
        watched.extend(lifeline.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        let cut = watched.get(1).and_then(PollFd::any).unwrap_or(false);
        if watched[0].any().unwrap_or(false) {
            ended.read_signal()?;
        }
        if cut {
            lifeline = None;
            kill(init, Signal::SIGKILL)?;
        }
    }
}

/// A normal user becomes the workspace's user inside, and nobody else exists there
/// (<https://man7.org/linux/man-pages/man7/user_namespaces.7.html>).
fn map_user(uid: Uid, gid: Gid) -> Result<(), WorldError> {
    let inside = UserId::CODER.0;
    for (file, line) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{inside} {uid} 1")),
        ("gid_map", format!("{inside} {gid} 1")),
    ] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, line).map_err(at(format!("write {path}")))?;
    }
    Ok(())
}

fn raise_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: an all-zero ifreq is valid; the kernel reads the name and writes the flags of this local value.
    unsafe {
        let mut request: nix::libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = nix::libc::c_char::from_ne_bytes([*from]);
        }
        if nix::libc::ioctl(socket.as_raw_fd(), nix::libc::SIOCGIFFLAGS, &mut request) < 0 {
            return Err(io::Error::last_os_error());
        }
        let up = nix::libc::c_short::try_from(nix::libc::IFF_UP).expect("it is 1");
        request.ifr_ifru.ifru_flags |= up;
        if nix::libc::ioctl(socket.as_raw_fd(), nix::libc::SIOCSIFFLAGS, &request) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Sets up the world and becomes its PID 1. Only returns with an error.
fn become_init(
    plan: &Plan,
    world: &Path,
    root: bool,
) -> Result<std::convert::Infallible, WorldError> {
    mounts::build(plan, world, root)?;
    nix::unistd::sethostname(&plan.spec.hostname).map_err(at("set the host name"))?;
    if root {
        become_user()?;
    }
    prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
    // After the change of user, which clears it.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at("bind to the supervisor"))?;
    std::env::set_current_dir(&plan.spec.home).map_err(at("enter the home"))?;
    SigSet::all()
        .thread_unblock()
        .map_err(at("unblock signals"))?;
    let null = File::open("/dev/null").map_err(at("open /dev/null"))?;
    // SAFETY: dup2 onto this process's own standard input: the supervisor's lifeline must not be held in here.
    if unsafe { nix::libc::dup2(null.as_raw_fd(), 0) } < 0 {
        return Err(at("close standard input")(io::Error::last_os_error()));
    }
    let args: Vec<CString> = plan.spec.init.iter().map(|arg| c_string(arg)).collect();
    let env: Vec<CString> = plan
        .spec
        .env
        .iter()
        .map(|(name, value)| c_string(&format!("{name}={value}")))
        .collect();
    let program = args
        .first()
        .ok_or_else(|| at("start PID 1")(io::Error::other("no program named")))?;
    nix::unistd::execve(program, &args, &env)
        .map_err(at(format!("start {}", program.to_string_lossy())))
}

/// Becomes the workspace's user.
pub(crate) fn become_user() -> Result<(), WorldError> {
    let id = UserId::CODER.0;
    nix::unistd::setgroups(&[]).map_err(at("leave all groups"))?;
    nix::unistd::setgid(Gid::from_raw(id)).map_err(at("change the group"))?;
    nix::unistd::setuid(Uid::from_raw(id)).map_err(at("change the user"))
}

/// Arguments and environment come from JSON strings; one with a NUL is cut there, as the kernel would.
fn c_string(text: &str) -> CString {
    let bytes = OsStr::new(text).as_bytes();
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    CString::new(&bytes[..end]).expect("it was cut at the first NUL")
}
