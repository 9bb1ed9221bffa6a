//! The `coder` command as modules find it in a workspace: the sub-commands they call, and a clear refusal of the
//! rest.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{configure, mcp, sync};

#[derive(Debug, Parser)]
#[command(name = "coder", about = "Coder's command, as far as modules call it")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Experimental commands
    Exp {
        #[command(subcommand)]
        command: Exp,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Subcommand)]
enum Exp {
    /// Model context protocol
    Mcp {
        #[command(subcommand)]
        command: Mcp,
    },
    /// Order scripts among each other
    Sync {
        #[command(subcommand)]
        command: Sync,
    },
}

#[derive(Debug, Subcommand)]
enum Mcp {
    /// Serve on standard input and output
    Server {
        /// Which tools to offer; all where none is named
        #[arg(long = "allowed-tools", value_delimiter = ',')]
        allowed_tools: Vec<String>,
        /// The app whose status is reported
        #[arg(long, env = "CODER_MCP_APP_STATUS_SLUG")]
        app_status_slug: Option<String>,
        /// Where AgentAPI listens
        #[arg(long, env = "CODER_MCP_AI_AGENTAPI_URL")]
        ai_agentapi_url: Option<String>,
    },
    /// Tell an agent of the server
    Configure {
        #[command(subcommand)]
        agent: Configured,
    },
}

/// Coder's own command knows two more programs, which no task runs.
#[derive(Debug, Subcommand)]
enum Configured {
    /// Claude Code
    ClaudeCode {
        /// The directory it works in
        project: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum Sync {
    /// Is the agent there?
    Ping,
    /// UNIT shall wait for the others
    Want {
        /// The unit
        unit: String,
        /// What it waits for
        #[arg(required = true)]
        dependencies: Vec<String>,
    },
    /// Wait for what UNIT wants, then count it as started
    Start {
        /// The unit
        unit: String,
        /// Seconds it may take
        #[arg(long, default_value = "5m")]
        timeout: String,
    },
    /// Count UNIT as complete
    Complete {
        /// The unit
        unit: String,
    },
    /// Print what is known of UNIT
    Status {
        /// The unit
        unit: String,
    },
}

/// Where units leave their state: new at every start, as the real agent's memory is.
fn sync_dir() -> PathBuf {
    std::env::temp_dir().join("coder-agent-sync")
}

/// Plays `coder` with `args`, the program's name first.
pub fn main<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() {
                eprintln!(
                    "(this is reprise's `coder`: it knows `exp mcp server`, `exp mcp configure claude-code`, `exp sync` and `version`)"
                );
            }
            return ExitCode::from(if error.use_stderr() { 1 } else { 0 });
        }
    };
    let dir = sync_dir();
    let result = match cli.command {
        Command::Version => {
            println!("Coder (played by reprise {})", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Exp { command } => match command {
            Exp::Mcp {
                command:
                    Mcp::Server {
                        allowed_tools,
                        app_status_slug,
                        ai_agentapi_url: _,
                    },
            } => mcp::serve(&allowed_tools, app_status_slug.as_deref())
                .map_err(|error| error.to_string()),
            Exp::Mcp {
                command:
                    Mcp::Configure {
                        agent: Configured::ClaudeCode { project },
                    },
            } => configure::claude_code(&project, &configure::Environment::of_process())
                .map_err(|error| error.to_string()),
            Exp::Sync { command } => match command {
                Sync::Ping => {
                    println!("Success");
                    Ok(())
                }
                Sync::Want { unit, dependencies } => sync::want(&dir, &unit, &dependencies),
                Sync::Start { unit, timeout } => sync::start(&dir, &unit, &timeout),
                Sync::Complete { unit } => sync::complete(&dir, &unit),
                Sync::Status { unit } => sync::status(&dir, &unit),
            }
            .map_err(|error| error.to_string()),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
