//! The command line: arguments become calls into the other rooms, and results become exit codes.

mod agent;
mod args;
mod audit;
mod check;
mod doctor;
mod drift;
mod exit;
mod gc;
mod images;
mod kubernetes;
mod list;
mod matrix;
mod measuring;
mod places;
mod run;
mod schema;
mod show;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use nix::sys::signal::{SigHandler, Signal, signal};

use args::{Cli, Command};
pub use exit::Exit;

/// Runs the command line with `args`, the program's name first.
pub fn main<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Pass
            }
            .into();
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("REPRISE_LOG"))
        .with_writer(std::io::stderr)
        .init();
    if !matches!(
        cli.command,
        Command::Run(_) | Command::Verify(_) | Command::Repro(_)
    ) {
        end_with_reader();
    }
    let result = match cli.command {
        Command::Run(args) => run::main(*args),
        Command::Verify(args) => verify::main(args),
        Command::Repro(args) => verify::repro(args),
        Command::Audit(args) => audit::main(args),
        Command::List(args) => list::main(&args),
        Command::Check(args) => check::main(&args),
        Command::Matrix(args) => matrix::main(&args),
        Command::Drift(args) => drift::main(&args),
        Command::Docs(args) => matrix::docs(&args),
        Command::Agent(command) => agent::main(&command),
        Command::Images(command) => images::main(&command),
        Command::Kubernetes(command) => kubernetes::main(&command),
        Command::Doctor(args) => doctor::main(&args),
        Command::Gc(args) => gc::main(&args),
        Command::Schema(args) => Ok(schema::main(&args)),
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Cli::command(),
                "reprise",
                &mut std::io::stdout(),
            );
            Ok(Exit::Pass)
        }
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            anstream::eprintln!("{:?}", failure.report);
            failure.exit.into()
        }
    }
}

/// A command that only prints ends when its reader has seen enough (`reprise list | head`). A run must not: its record and
/// its workspaces outweigh its output, and its sockets break as agents come and go.
fn end_with_reader() {
    // SAFETY: sets a default disposition before any thread is started.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
}

/// What keeps a command from its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) report: miette::Report,
}

impl Failure {
    pub(crate) fn new(exit: Exit, report: impl Into<miette::Report>) -> Self {
        Self {
            exit,
            report: report.into(),
        }
    }

    /// For errors that are only a message.
    pub(crate) fn message(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self {
            exit,
            report: miette::miette!("{message}"),
        }
    }
}

impl From<crate::scenario::CatalogueError> for Failure {
    fn from(error: crate::scenario::CatalogueError) -> Self {
        let exit = match error {
            crate::scenario::CatalogueError::Unknown { .. } => Exit::Usage,
            _ => Exit::BadFile,
        };
        Self::new(exit, error)
    }
}
