//! The reference agent's command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nix::sys::signal::{SigHandler, Signal, signal};

use crate::chat::{self, ChatError};
use crate::store::Store;

/// A coding agent that keeps its session, answers, and runs commands when its model asks for it.
#[derive(Debug, Parser)]
#[command(name = "reference-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take one message, answer it, end
    Run {
        /// Go on with the session instead of beginning it
        #[arg(long)]
        resume: bool,
        /// The session's name
        #[arg(long, default_value = "default")]
        session: String,
        /// The message
        message: String,
    },
    /// Take messages at the terminal until the input ends
    Chat {
        /// Go on with the session instead of beginning it
        #[arg(long)]
        resume: bool,
        /// The session's name
        #[arg(long, default_value = "default")]
        session: String,
        /// A file with the first message
        #[arg(long)]
        prompt_file: Option<PathBuf>,
    },
    /// Succeed if the session is there
    HasSession {
        /// The session's name
        #[arg(long, default_value = "default")]
        session: String,
    },
}

/// Plays the reference agent with `args`, the program's name first.
pub fn main<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = OsString>,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match act(cli.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("reference-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn act(command: Command) -> Result<ExitCode, ChatError> {
    let store = Store::open()?;
    match command {
        Command::Run {
            resume,
            session,
            message,
        } => {
            let mut chat = chat::Chat::begin(store, session, resume)?;
            println!("{}", chat.tell(&message)?);
        }
        Command::Chat {
            resume,
            session,
            prompt_file,
        } => {
            // A shell script that starts a program in the background has it ignore Ctrl-C, by which AgentAPI ends agents.
            // SAFETY: sets a default disposition before any thread is started.
            unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.map_err(std::io::Error::from)?;
            chat::Chat::begin(store, session, resume)?.converse(prompt_file.as_deref())?;
        }
        Command::HasSession { session } => {
            let there = !store.said(&session)?.is_empty();
            return Ok(ExitCode::from(u8::from(!there)));
        }
    }
    Ok(ExitCode::SUCCESS)
}
