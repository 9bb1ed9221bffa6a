//! Runs a command for the runner where an engine's exec can pass nothing but words: environment, directory and input stand
//! in standard input, after an [`Errand`] in its first line.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;

use reprise_model::Errand;
use thiserror::Error;

/// Why a command could not be run.
#[derive(Debug, Error)]
pub enum ErrandError {
    /// Standard input broke off or holds something else.
    #[error("cannot read the errand: {0}")]
    Unreadable(#[from] io::Error),
    /// The command is not there.
    #[error("cannot run `{command}`: {source}")]
    NotRun {
        /// The command.
        command: String,
        /// Why not.
        source: io::Error,
    },
}

/// Runs it, and gives its exit code; 128 + n after signal n.
pub(crate) fn main() -> Result<u8, ErrandError> {
    let mut input = io::BufReader::new(io::stdin());
    let mut line = String::new();
    input.read_line(&mut line)?;
    let errand: Errand = serde_json::from_str(&line).map_err(io::Error::from)?;
    let (program, args) = errand
        .argv
        .split_first()
        .ok_or_else(|| io::Error::other("it names no program"))?;
    let mut command = Command::new(program);
    command.args(args).envs(&errand.env).stdin(Stdio::piped());
    if let Some(dir) = &errand.cwd {
        command.current_dir(dir);
    }
    let mut child = command.spawn().map_err(|source| ErrandError::NotRun {
        command: errand.argv.join(" "),
        source,
    })?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    // Not waited for: a command may end before it has read all of its input.
    thread::spawn(move || {
        let copied = io::copy(&mut input.by_ref().take(errand.input), &mut stdin);
        copied.and_then(|_| stdin.flush())
    });
    let status = child.wait()?;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}
