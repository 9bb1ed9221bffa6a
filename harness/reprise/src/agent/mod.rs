//! What is known of an agent on this machine: its program, and the tools its layers need.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reprise_engine::Progress;
use reprise_model::Layer;

use crate::scenario::{AgentProfile, Install, ModuleProfile};
use crate::tools::{NpmPackage, Provider, Tools};

/// An agent that can be started.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Programs, by what they are called on PATH.
    pub programs: BTreeMap<String, PathBuf>,
    /// What took part, with its version.
    pub versions: BTreeMap<String, String>,
    /// What the module layer needs beside.
    pub terraform: Option<(PathBuf, Provider)>,
}

/// Obtains what an agent needs at a layer.
///
/// # Errors
/// With what could not be had, and what was tried.
pub async fn obtain(
    profile: &AgentProfile,
    layer: Layer,
    tools: &Tools,
    program: &std::path::Path,
    progress: Progress<'_>,
) -> Result<Installed, String> {
    let mut installed = Installed {
        programs: BTreeMap::new(),
        versions: BTreeMap::new(),
        terraform: None,
    };
    let (path, version) = match &profile.install {
        Install::Builtin { .. } => (
            program.to_owned(),
            format!("{} (reprise's own)", env!("CARGO_PKG_VERSION")),
        ),
        Install::Npm {
            package, program, ..
        } => {
            let pin = crate::tools::pin(package)
                .ok_or_else(|| format!("images/agents.lock pins no version of {package}"))?;
            let package = NpmPackage {
                name: package.clone(),
                pin,
                program: program.clone(),
            };
            let tool = tools
                .npm(&package, progress)
                .await
                .map_err(|tried| tried.to_string())?;
            (tool.path, tool.version)
        }
    };
    installed
        .programs
        .insert(profile.install.command().to_owned(), path);
    installed.versions.insert(profile.name.to_string(), version);
    if layer == Layer::Module {
        let module = profile
            .module
            .as_ref()
            .ok_or_else(|| format!("the profile of {} names no module", profile.name))?;
        obtain_module(module, tools, &mut installed, progress).await?;
    }
    Ok(installed)
}

async fn obtain_module(
    module: &ModuleProfile,
    tools: &Tools,
    installed: &mut Installed,
    progress: Progress<'_>,
) -> Result<(), String> {
    let terraform = tools
        .terraform(progress)
        .await
        .map_err(|tried| tried.to_string())?;
    let provider = tools
        .provider(progress)
        .await
        .map_err(|tried| tried.to_string())?;
    let agentapi = tools
        .agentapi(&module.agentapi, progress)
        .await
        .map_err(|tried| tried.to_string())?;
    let versions = &mut installed.versions;
    versions.insert(
        "terraform".to_owned(),
        format!("{} ({})", terraform.version, terraform.from),
    );
    versions.insert("agentapi".to_owned(), agentapi.version);
    versions.insert("coder provider".to_owned(), provider.describe());
    installed
        .programs
        .insert("agentapi".to_owned(), agentapi.path);
    installed.terraform = Some((terraform.path, provider));
    Ok(())
}
