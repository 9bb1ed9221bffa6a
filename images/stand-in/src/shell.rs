//! Commands that a model asks for.

use std::process::Command;

/// What a command writes, to both streams.
pub(crate) fn run(command: &str) -> String {
    match Command::new("sh").args(["-c", command]).output() {
        Ok(output) => format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => format!("cannot run it: {error}"),
    }
}
