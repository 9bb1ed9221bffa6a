//! What is known of an agent on this machine: its program, and the tools its layers need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reprise_engine::Progress;
use reprise_model::{Layer, Subject};

use crate::scenario::{
    AgentProfile, Install, ModuleProfile, Package, Packages, Placeholders, Vendor,
};
use crate::tools::{Provider, Tools};
use crate::workspace::{NPM_DIR, PYPI_DIR};

/// An agent that can be started.
#[derive(Debug, Clone, Default)]
pub struct Installed {
    /// Programs, by what they are called on PATH.
    pub programs: BTreeMap<String, PathBuf>,
    /// Command lines, by what they are called on PATH.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Directories shown in the workspace, by where.
    pub directories: BTreeMap<PathBuf, PathBuf>,
    /// What took part, with its version.
    pub versions: BTreeMap<String, String>,
    /// What the module layer needs beside.
    pub terraform: Option<(PathBuf, Provider)>,
}

/// Obtains what an agent needs at a layer. `program` is this program, static.
///
/// # Errors
/// With what could not be had, and what was tried.
pub async fn obtain(
    profile: &AgentProfile,
    subject: Subject,
    layer: Layer,
    tools: &Tools,
    program: &Path,
    progress: Progress<'_>,
) -> Result<Installed, String> {
    let mut installed = Installed::default();
    match (&profile.install, subject) {
        (Install::Packages(packages), Subject::RealAgent) => {
            obtain_packages(profile, packages, tools, &mut installed, progress).await?;
        }
        (Install::Vendor(vendor), Subject::RealAgent) => {
            return Err(vendors(profile, vendor));
        }
        (Install::Builtin, _) | (_, Subject::StandIn) => {
            let version = format!("{} (reprise's own)", env!("CARGO_PKG_VERSION"));
            let name = match &profile.install {
                Install::Builtin => profile.name.to_string(),
                _ => format!("{} stand-in", profile.name),
            };
            installed.versions.insert(name, version);
            installed
                .programs
                .insert(profile.command.clone(), program.to_owned());
        }
    }
    if layer == Layer::Module {
        let module = profile
            .module
            .as_ref()
            .ok_or_else(|| format!("the profile of {} names no module", profile.name))?;
        obtain_module(module, tools, &mut installed, progress).await?;
    }
    Ok(installed)
}

/// The same agent as it was before: what is installed, with the earlier release of each package that has one.
///
/// # Errors
/// If no earlier release is pinned, or it cannot be had.
pub async fn obtain_before(
    profile: &AgentProfile,
    now: &Installed,
    tools: &Tools,
    progress: Progress<'_>,
) -> Result<Installed, String> {
    let mut before = now.clone();
    if let Install::Packages(packages) = &profile.install {
        let named = packages.from.iter().filter_map(|package| match package {
            Package::Npm(name) => Some(name),
            Package::Pypi(_) => None,
        });
        for name in named {
            let tool = tools.npm_before(name, progress).await;
            if let Some(tool) = tool.map_err(|tried| tried.to_string())? {
                before
                    .directories
                    .insert(Path::new(NPM_DIR).join(name), tool.path);
                before
                    .versions
                    .insert(profile.name.to_string(), tool.version);
            }
        }
    }
    if before.versions == now.versions {
        return Err(format!(
            "no release of {} before the pinned one is pinned in images/agents.lock",
            profile.name
        ));
    }
    Ok(before)
}

/// Why an agent of its vendor's only is not measured, and what a user would need.
fn vendors(profile: &AgentProfile, vendor: &Vendor) -> String {
    let missing: Vec<&str> = vendor
        .credentials
        .iter()
        .map(String::as_str)
        .filter(|name| std::env::var_os(name).is_none())
        .collect();
    let needs = if missing.is_empty() {
        "this version does not yet measure it live, though its credentials are there".to_owned()
    } else {
        format!(
            "live, it needs {} in the environment, its program ({}) and {}",
            missing.join(", "),
            vendor.documented,
            vendor.hosts.join(", ")
        )
    };
    format!(
        "{} cannot be measured offline: {}; {needs}",
        profile.title, vendor.why
    )
}

/// The script that is a command line on PATH.
#[must_use]
pub fn script(command: &[String]) -> String {
    format!("#!/bin/sh\nexec {} \"$@\"\n", shell_words::join(command))
}

async fn obtain_packages(
    profile: &AgentProfile,
    packages: &Packages,
    tools: &Tools,
    installed: &mut Installed,
    progress: Progress<'_>,
) -> Result<(), String> {
    for (place, package) in packages.from.iter().enumerate() {
        let (target, tool) = match package {
            Package::Npm(name) => (
                Path::new(NPM_DIR).join(name),
                tools.npm(name, progress).await,
            ),
            Package::Pypi(name) => (
                Path::new(PYPI_DIR).join(name),
                tools.pypi(name, progress).await,
            ),
        };
        let tool = tool.map_err(|tried| tried.to_string())?;
        let name = match (place, package) {
            (0, _) => profile.name.to_string(),
            (_, Package::Npm(name) | Package::Pypi(name)) => name.clone(),
        };
        installed.versions.insert(name, tool.version);
        installed.directories.insert(target, tool.path);
    }
    let lie = Placeholders::default()
        .with("npm", NPM_DIR)
        .with("pypi", PYPI_DIR);
    for (name, command) in &packages.commands {
        let command = lie.expand_all(command).map_err(|error| error.to_string())?;
        installed.commands.insert(name.clone(), command);
    }
    Ok(())
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
