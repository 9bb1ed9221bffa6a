//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use reprise_model::{EngineKind, Layer, ModuleRef};

use super::measuring::{AgentapiArgs, ClusterArgs, ReproArgs, RunArgs, VerifyArgs};

/// Proves what a coding agent's session is worth after its workspace restarts
#[derive(Debug, Parser)]
#[command(
    name = "reprise",
    version,
    after_help = "Exit codes: 0 pass, 1 a check failed, 2 inconclusive, 3 a required cell was not measured,\n64 usage, 65 a file is wrong, 69 no engine, 74 input/output, 130 interrupted."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure agents: run scenarios, record them, judge them
    Run(Box<RunArgs>),
    /// Name what can be measured
    List(ListArgs),
    /// Judge recorded runs again, without running anything
    Check(CheckArgs),
    /// Seed faults and show that each check notices those it is there for
    Verify(VerifyArgs),
    /// Run a random scenario again, and find the shortest one that shows the same
    Repro(ReproArgs),
    /// Tell what modules do with places that a restart treats differently
    Audit(AuditArgs),
    /// Set claims beside measurements: the compatibility matrix
    Matrix(MatrixArgs),
    /// Tell what moved since verdicts were last accepted
    Drift(DriftArgs),
    /// Write the compatibility page from measurements, or check it
    Docs(DocsArgs),
    /// Try an agent's profile
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Packages and images of agents
    #[command(subcommand)]
    Images(ImagesCommand),
    /// What the kubernetes engine does in a cluster
    #[command(subcommand)]
    Kubernetes(KubernetesCommand),
    /// Tell what this machine has, and what is not measurable for want of it
    Doctor(DoctorArgs),
    /// Remove what a killed run left behind
    Gc(GcArgs),
    /// Print the JSON Schema of a file
    Schema(SchemaArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For programs
    Json,
    /// For CI
    Junit,
    /// For GitHub Actions: a matrix of jobs from a list, a summary in Markdown from a run
    Github,
}

/// The forms of what has no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Readers {
    /// For people
    Human,
    /// For programs
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineArg {
    /// Namespaces on this machine
    Sandbox,
    /// Containers of a Docker daemon
    Docker,
    /// Pods of a Kubernetes cluster
    Kubernetes,
}

impl From<EngineArg> for EngineKind {
    fn from(arg: EngineArg) -> Self {
        match arg {
            EngineArg::Sandbox => Self::Sandbox,
            EngineArg::Docker => Self::Docker,
            EngineArg::Kubernetes => Self::Kubernetes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LayerArg {
    /// The agent's own commands
    Native,
    /// The released module
    Module,
}

impl From<LayerArg> for Layer {
    fn from(arg: LayerArg) -> Self {
        match arg {
            LayerArg::Native => Self::Native,
            LayerArg::Module => Self::Module,
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    pub(super) command: Option<AuditCommand>,
    /// Modules, such as coder/goose; all of the registry where none is named
    pub(super) modules: Vec<ModuleRef>,
    /// A module registry: a checkout (its working tree is read), a git URL, or a bundle [default: the public one]
    #[arg(
        long,
        env = "REPRISE_REGISTRY",
        hide_env_values = true,
        value_name = "PLACE"
    )]
    pub(super) registry: Option<String>,
    /// Add what these recorded runs show of what modules write
    #[arg(long, value_name = "DIR")]
    pub(super) seen: Option<PathBuf>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Readers::Human)]
    pub(super) format: Readers,
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Tell whether a template's home volume survives a rename, a stop and a template update, by `terraform plan`
    Template {
        /// The template's directory
        dir: PathBuf,
        /// The address of a volume, such as docker_volume.home [default: every resource that is known as a volume]
        #[arg(long = "volume", value_name = "ADDRESS")]
        volumes: Vec<String>,
        /// How it is printed
        #[arg(long, value_enum, default_value_t = Readers::Human)]
        format: Readers,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Agents, with their modules
    Agents,
    /// Scenarios
    Scenarios,
    /// Checks
    Checks,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// What to name; all where nothing is said
    pub(super) what: Option<What>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// Scenarios and profiles in place of those that come with reprise
    #[arg(long, value_name = "DIR")]
    pub(super) catalogue: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// A run's directory, or one of its cells'
    pub(super) directory: PathBuf,
    /// Print each history's outline instead: what happened, without what differs from run to run
    #[arg(long)]
    pub(super) outline: bool,
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct MatrixArgs {
    /// Runs' directories, or their results.json; of two that measured the same cell the later counts [default: the last run]
    pub(super) results: Vec<PathBuf>,
    /// Where runs are recorded
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Readers::Human)]
    pub(super) format: Readers,
}

#[derive(Debug, Args)]
pub(super) struct DriftArgs {
    /// Runs' directories, or their results.json [default: the last run]
    pub(super) results: Vec<PathBuf>,
    /// Where runs are recorded
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,
    /// The accepted verdicts
    #[arg(long, value_name = "PATH", default_value = "scenarios/baseline.json")]
    pub(super) baseline: PathBuf,
    /// Accept what was measured: what these runs did not measure stays as it was
    #[arg(long)]
    pub(super) accept: bool,
}

#[derive(Debug, Args)]
pub(super) struct DocsArgs {
    /// Runs' directories, or their results.json; of two that measured the same cell the later counts [default: the last run]
    pub(super) results: Vec<PathBuf>,
    /// Where runs are recorded
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,
    /// Write the page to this file
    #[arg(long, value_name = "PATH", conflicts_with = "check")]
    pub(super) write: Option<PathBuf>,
    /// End with 1 and a diff if this file says other than was measured
    #[arg(long, value_name = "PATH")]
    pub(super) check: Option<PathBuf>,
    /// A template in place of the one that comes with reprise
    #[arg(long, value_name = "PATH")]
    pub(super) template: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// Read a profile and measure its agent through a warm restart, at every layer it has
    Check(AgentCheckArgs),
}

#[derive(Debug, Args)]
pub(super) struct AgentCheckArgs {
    /// The profile
    pub(super) file: PathBuf,
    /// Only read it
    #[arg(long)]
    pub(super) read_only: bool,
    /// Where workspaces run [default: docker where a daemon answers, else sandbox]
    #[arg(short, long)]
    pub(super) engine: Option<EngineArg>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ImagesCommand {
    /// Make a ready-to-run Docker image for each agent
    Build {
        /// Agents; all that come from package registries where none is named
        agents: Vec<String>,
        /// Make the two images that the kubernetes engine needs instead: the workspaces' and this program's
        #[arg(long, conflicts_with = "agents")]
        cluster: bool,
        /// The registry that their names shall begin with, for `docker push`
        #[arg(long, value_name = "REGISTRY", requires = "cluster")]
        image_registry: Option<String>,
    },
    /// Move the pins of a lock file to the newest versions
    Update {
        /// Packages; all of npm's where none is named
        packages: Vec<String>,
        /// The lock file
        #[arg(long, value_name = "PATH", default_value = "images/agents.lock")]
        lock: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KubernetesCommand {
    /// Print every object that a run with one workspace would create, for review
    Manifests(ClusterArgs),
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Obtain what is missing: download, build, make the base image
    #[arg(long)]
    pub(super) obtain: bool,
    /// Look at this engine, too: kubernetes is looked at only where it is asked for
    #[arg(short, long)]
    pub(super) engine: Option<EngineArg>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    #[command(flatten)]
    pub(super) agentapi: AgentapiArgs,
}

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Also what belongs to a process that is still running
    #[arg(long)]
    pub(super) all: bool,
    /// Only tell what would be removed
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Look at this engine only [default: sandbox and docker]
    #[arg(short, long)]
    pub(super) engine: Option<EngineArg>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// A scenario
    Scenario,
    /// An agent's profile
    Agent,
    /// The list of faults
    Faults,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Of which file
    pub(super) of: SchemaOf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
