//! Builds with the Go toolchain, where it is installed. Modules come from the proxy that Go itself is set up for.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use tokio::process::Command;

use super::command::{CommandError, run};
use super::on_path;

/// Why a build gave nothing.
#[derive(Debug, Error)]
pub(super) enum GoError {
    /// There is no toolchain.
    #[error("the Go toolchain is not installed")]
    NotInstalled,
    /// A command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file could not be written.
    #[error("cannot write the build's files: {0}")]
    Io(#[from] std::io::Error),
    /// Go said something this program does not understand.
    #[error("cannot understand what go printed: {0}")]
    Json(#[from] serde_json::Error),
}

fn go() -> Result<Command, GoError> {
    let program = on_path("go").ok_or(GoError::NotInstalled)?;
    let mut command = Command::new(program);
    command
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod -buildvcs=false");
    Ok(command)
}

/// Builds the main package of a source tree.
pub(super) async fn build_tree(tree: &Path, to: &Path) -> Result<(), GoError> {
    let mut command = go()?;
    command
        .current_dir(tree)
        .args(["build", "-trimpath", "-o"])
        .arg(to)
        .arg(".");
    run(&mut command).await?;
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    go_mod: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoMod {
    #[serde(default)]
    replace: Option<Vec<Replace>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Replace {
    old: Module,
    new: Module,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Module {
    path: String,
    #[serde(default)]
    version: Option<String>,
}

impl Module {
    fn shown(&self, separator: char) -> String {
        match &self.version {
            Some(version) => format!("{}{separator}{version}", self.path),
            None => self.path.clone(),
        }
    }
}

/// Builds `package` of a released module by a small module that requires it, with the released module's own replacements,
/// which `go install` would refuse.
pub(super) async fn build_release(
    module: &str,
    version: &str,
    package: &str,
    workshop: &Path,
    to: &Path,
) -> Result<(), GoError> {
    let released = format!("{module}@{version}");
    let printed = run(go()?
        .current_dir(workshop)
        .args(["mod", "download", "-json", &released]))
    .await?;
    let download: Download = serde_json::from_str(&printed)?;
    let printed = run(go()?.args(["mod", "edit", "-json", &download.go_mod])).await?;
    let go_mod: GoMod = serde_json::from_str(&printed)?;

    let mut text = format!("module wrapper\n\ngo 1.24\n\nrequire {module} {version}\n");
    for replace in go_mod.replace.unwrap_or_default() {
        // A replacement by a directory is of no use outside the released module's own tree.
        if replace.new.version.is_some() {
            text.push_str(&format!(
                "replace {} => {}\n",
                replace.old.shown(' '),
                replace.new.shown(' ')
            ));
        }
    }
    fs::write(workshop.join("go.mod"), text)?;
    fs::write(
        workshop.join("tools.go"),
        format!("//go:build tools\n\npackage tools\n\nimport _ \"{package}\"\n"),
    )?;
    run(go()?
        .current_dir(workshop)
        .args(["build", "-trimpath", "-o"])
        .arg(to)
        .arg(package))
    .await?;
    Ok(())
}
