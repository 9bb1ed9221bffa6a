//! What runs inside a workspace: PID 1, the probe, the `coder` command, and small errands for the runner.
//!
//! It does what Coder's agent does where a module can see it
//! (<https://github.com/coder/coder/tree/main/agent/agentscripts>): start scripts run together, stop scripts
//! run at SIGTERM within a deadline, each script gets a data directory of its own and the shared bin directory,
//! and whatever is left when PID 1 ends is killed by the kernel.

mod coder;
mod configure;
mod crash;
mod damage;
mod disk;
mod errand;
mod forward;
mod home;
mod init;
mod install;
mod marks;
mod mcp;
mod plain;
mod probe;
mod processes;
mod reaper;
mod request;
mod script;
mod search;
mod sqlite;
mod stopwatch;
mod sync;
mod walls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use forward::Outside;

pub use coder::main as coder_main;
pub use probe::{ProbeError, probe};

/// The roles that the runner asks for by exec.
#[derive(Debug, Parser)]
#[command(
    name = "workspace-agent",
    about = "What reprise runs inside a workspace"
)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be PID 1: run the scripts that FILE names
    Init {
        /// The spec, as JSON
        file: PathBuf,
        /// An address of this workspace's loopback that leads outside
        #[arg(long, requires = "forward_to")]
        forward_from: Option<SocketAddr>,
        /// Where it leads: a socket, or tcp://ADDRESS:PORT/WORKSPACE
        #[arg(long, requires = "forward_from")]
        forward_to: Option<Outside>,
    },
    /// Put this program below DIR, and unpack there what a start needs
    Install {
        /// Where it is fetched: a URL
        #[arg(long)]
        from: String,
        /// The directory
        #[arg(long)]
        into: PathBuf,
        /// Another name of this program
        #[arg(long = "name")]
        names: Vec<String>,
        /// What to fetch
        #[arg(long = "fetch")]
        keys: Vec<String>,
    },
    /// Run the command that standard input names
    Errand,
    /// Print whether OPEN is reached from here, and whether SHUT is, as JSON
    TryWalls {
        /// A URL that must be reached
        open: String,
        /// A URL that must not be
        shut: String,
    },
    /// End every process of this workspace at once
    Crash {
        /// By taking all its memory
        #[arg(long)]
        by_memory: bool,
    },
    /// Print what lies below DIR, as JSON
    Probe {
        /// The directory to look at
        dir: PathBuf,
    },
    /// Print the command lines of what runs here, as JSON
    Processes,
    /// Have every process of PROGRAM stand still; print how many there are, as JSON
    Freeze {
        /// Its name
        program: String,
    },
    /// Print which files below DIR hold nonces, as JSON
    Search {
        /// The directory to look at
        dir: PathBuf,
    },
    /// Write to DIR until nothing more can be written, or remove what was written
    FillDisk {
        /// The directory
        dir: PathBuf,
        /// Remove it instead
        #[arg(long)]
        free: bool,
    },
    /// Send one HTTP request with standard input as its body; print status and body as JSON
    Request {
        /// GET, POST, …
        method: String,
        /// Where to
        url: String,
        /// Seconds it may take
        #[arg(long, default_value_t = 10)]
        timeout: u64,
    },
    /// Leave WORD in the home, outside it, and as a process
    PlantMarks {
        /// The mark
        word: String,
    },
    /// Print which of the marks are there, as JSON
    FindMarks {
        /// The mark
        word: String,
    },
    /// Be the process that `plant-marks` leaves
    HoldMark {
        /// The mark
        word: String,
    },
}

/// Plays the role that `args` (the program's name first) ask for.
pub fn main<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(2);
        }
    };
    let result = match cli.role {
        Role::Init {
            file,
            forward_from,
            forward_to,
        } => init::main(&file, forward_from.zip(forward_to)).map_err(|error| error.to_string()),
        Role::Install {
            from,
            into,
            names,
            keys,
        } => install::main(&from, &into, &names, &keys).map_err(|error| error.to_string()),
        Role::Errand => match errand::main() {
            Ok(code) => return ExitCode::from(code),
            Err(error) => {
                eprintln!("workspace-agent: {error}");
                // As a shell has it for a command that is not there.
                return ExitCode::from(127);
            }
        },
        Role::TryWalls { open, shut } => {
            walls::main(&open, &shut).map_err(|error| error.to_string())
        }
        Role::Crash { by_memory } => crash::ask(by_memory).map_err(|error| error.to_string()),
        Role::Probe { dir } => probe::main(&dir).map_err(|error| error.to_string()),
        Role::Processes => {
            println!("{}", serde_json::json!(processes::command_lines()));
            Ok(())
        }
        Role::Freeze { program } => processes::freeze(&program).map_err(|error| error.to_string()),
        Role::Search { dir } => search::main(&dir).map_err(|error| error.to_string()),
        Role::FillDisk { dir, free } => disk::main(&dir, free).map_err(|error| error.to_string()),
        Role::Request {
            method,
            url,
            timeout,
        } => request::main(&method, &url, timeout).map_err(|error| error.to_string()),
        Role::PlantMarks { word } => marks::plant(&word).map_err(|error| error.to_string()),
        Role::FindMarks { word } => marks::find(&word).map_err(|error| error.to_string()),
        Role::HoldMark { .. } => marks::hold(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("workspace-agent: {message}");
            ExitCode::FAILURE
        }
    }
}
