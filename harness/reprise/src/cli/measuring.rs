//! What can be typed where something is measured.

use std::path::PathBuf;

use clap::Args;
use reprise_model::ModuleRef;

use super::args::{EngineArg, Format, LayerArg, Readers};
use crate::scenario::Suite;

/// Reads `NAME=VALUE`.
fn setting(typed: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = typed
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("write NAME=VALUE, such as continue=true")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

/// Where what is built from sources comes from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct AgentapiArgs {
    /// Where AgentAPI's sources come from [default: its public repository]
    #[arg(
        long,
        env = "REPRISE_AGENTAPI_SOURCE",
        hide_env_values = true,
        value_name = "PLACE"
    )]
    pub(super) agentapi_source: Option<String>,
}

/// Which cluster, and how workspaces look there.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "With --engine kubernetes")]
pub(super) struct ClusterArgs {
    /// The kubeconfig [default: KUBECONFIG's, or your own]
    #[arg(long, value_name = "PATH")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Its context [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// The namespace to work in [default: the context's]
    #[arg(long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// The storage class of workspaces' volumes [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    pub(super) storage_class: Option<String>,
    /// The size of workspaces' volumes [default: 1Gi]
    #[arg(long, value_name = "SIZE")]
    pub(super) storage_size: Option<String>,
    /// The registry from which the cluster pulls reprise's images [default: none, its nodes have them]
    #[arg(long, value_name = "REGISTRY")]
    pub(super) image_registry: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Agents to measure; all where none is named
    pub(super) agents: Vec<String>,
    /// Scenarios to run; where none is named, the basic suite without those of another engine's own
    #[arg(short, long = "scenario", value_name = "NAME")]
    pub(super) scenarios: Vec<String>,
    /// Whole suites of scenarios to run
    #[arg(
        long = "suite",
        value_name = "SUITE",
        value_enum,
        conflicts_with = "scenarios"
    )]
    pub(super) suites: Vec<Suite>,
    /// Measure each cell so many times
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) repeat: u16,
    /// Layers to measure; both where none is named
    #[arg(short, long = "layer", value_name = "LAYER")]
    pub(super) layers: Vec<LayerArg>,
    /// Measure agents that need their vendors' services, too, with your own account: its credentials stand in the environment
    #[arg(long, conflicts_with = "stand_in")]
    pub(super) live: bool,
    /// Measure what reprise has in an agent's place, for every agent: its module's scripts are real, its program is not
    #[arg(long)]
    pub(super) stand_in: bool,
    /// Where workspaces run [default: docker where a daemon answers, else sandbox]
    #[arg(short, long)]
    pub(super) engine: Option<EngineArg>,
    /// A module registry: a checkout (its working tree is measured), a git URL, or a bundle [default: the public one]
    #[arg(
        long,
        env = "REPRISE_REGISTRY",
        hide_env_values = true,
        value_name = "PLACE"
    )]
    pub(super) registry: Option<String>,
    /// The module to measure, such as coder/goose@3.0.1
    #[arg(long, value_name = "NS/NAME[@VERSION]")]
    pub(super) module: Option<ModuleRef>,
    /// A variable of the module, as JSON or a bare word: a setting that is not the default
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(super) set: Vec<(String, serde_json::Value)>,
    #[command(flatten)]
    pub(super) agentapi: AgentapiArgs,
    /// Cells that must be measured: AGENT, AGENT/LAYER, AGENT/LAYER/SCENARIO or all
    #[arg(long, value_name = "CELLS", value_delimiter = ',')]
    pub(super) require: Vec<String>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// Cells measured at once [default: two for each processor, twelve with --stand-in]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: Option<u16>,
    /// Keep workspaces for a look; `reprise gc` removes them
    #[arg(long)]
    pub(super) keep: bool,
    /// Seconds one cell may take
    #[arg(long, value_name = "SECONDS", default_value_t = crate::runner::CELL_LIMIT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: u64,
    /// Where runs are recorded
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,
    /// The gateway's port inside workspaces
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..))]
    pub(super) gateway_port: Option<u16>,
    /// Scenarios and profiles in place of those that come with reprise
    #[arg(long, value_name = "DIR")]
    pub(super) catalogue: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Faults to seed; all where none is named
    pub(super) faults: Vec<String>,
    /// Healthy cells to measure beside them, in which no check may fire [default: 100, none where faults are named]
    #[arg(long, value_name = "COUNT")]
    pub(super) healthy: Option<usize>,
    /// Where workspaces run [default: docker where a daemon answers, else sandbox]
    #[arg(short, long)]
    pub(super) engine: Option<EngineArg>,
    /// Cells measured at once [default: eight for each processor]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: Option<u16>,
    #[command(flatten)]
    pub(super) agentapi: AgentapiArgs,
    /// Where runs are recorded
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,
    /// Random scenarios to run instead; each names the seed that gives it again
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["faults", "healthy"])]
    pub(super) random: Option<u64>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Readers::Human)]
    pub(super) format: Readers,
}

#[derive(Debug, Args)]
pub(super) struct ReproArgs {
    /// The seed
    pub(super) seed: u64,
    /// Where workspaces run [default: docker where a daemon answers, else sandbox]
    #[arg(short, long)]
    pub(super) engine: Option<EngineArg>,
    #[command(flatten)]
    pub(super) agentapi: AgentapiArgs,
    /// Where runs are recorded
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,
}
