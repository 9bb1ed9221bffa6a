//! Running other programs and saying what they said when they fail.

use std::process::{ExitStatus, Stdio};

use thiserror::Error;
use tokio::process::Command;

/// Why a program gave nothing.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It could not be started.
    #[error("cannot run {program}: {source}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It failed.
    #[error("`{command}` ended with {status}:\n{said}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// All it wrote.
        said: String,
    },
}

/// Runs a command to its end, without input, and gives its standard output.
///
/// # Errors
/// If it cannot be started or ends badly; all it wrote is in the error.
pub async fn run(command: &mut Command) -> Result<String, CommandError> {
    let shown = {
        let command = command.as_std();
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ")
    };
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|source| CommandError::NotStarted {
            program: shown.split(' ').next().unwrap_or_default().to_owned(),
            source,
        })?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    Err(CommandError::Failed {
        command: shown,
        status: output.status,
        said: said.trim().to_owned(),
    })
}
