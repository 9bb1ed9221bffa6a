//! What runs in this workspace beside PID 1.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Ids of all processes but PID 1 and this one.
pub(crate) fn others() -> Vec<u32> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != 1 && *pid != own)
        .collect()
}

/// Ids of the processes of a program: one that has ended and was not waited for yet is none.
fn of(program: &str) -> impl Iterator<Item = u32> {
    others().into_iter().filter(move |pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == program) && !command_line(*pid).is_empty()
    })
}

/// Whether a process of that program lives.
pub(crate) fn runs(program: &str) -> bool {
    of(program).next().is_some()
}

/// Stops every process of a program, and prints how many there are.
///
/// # Errors
/// If one cannot be stopped.
pub(crate) fn freeze(program: &str) -> nix::Result<()> {
    let mut count = 0;
    for pid in of(program) {
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGSTOP)?;
        count += 1;
    }
    println!("{count}");
    Ok(())
}

/// The command lines of all processes that live beside PID 1, in order. Processes of ours are not told of.
pub(crate) fn command_lines() -> Vec<String> {
    let mut lines: Vec<String> = others()
        .into_iter()
        .map(command_line)
        .filter(|line| !line.is_empty() && !line.contains(" workspace-agent "))
        .collect();
    lines.sort();
    lines
}

/// Empty for what has ended.
fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    words.join(" ")
}
