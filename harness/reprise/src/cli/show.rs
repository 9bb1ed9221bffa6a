//! Prints results.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use super::args::Readers;
use super::{Exit, Failure};

/// Prints what was found, for people or for programs. Piped output has no width: `piped` columns keep a row in a line.
pub(super) fn found<T: Serialize + ?Sized>(
    what: &T,
    readers: Readers,
    table: impl FnOnce(&T, Option<u16>) -> String,
    piped: u16,
) -> Result<(), Failure> {
    show(&match readers {
        Readers::Human => table(what, (!std::io::stdout().is_terminal()).then_some(piped)),
        Readers::Json => serde_json::to_string_pretty(what).expect("what is found is JSON") + "\n",
    })
}

/// Prints a text.
pub(super) fn show(text: &str) -> Result<(), Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::message(
            Exit::Io,
            format!("cannot print the results: {error}"),
        )),
        Ok(()) => Ok(()),
    }
}
