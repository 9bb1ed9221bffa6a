//! What images are called. A name holds the content's hash, so that a changed recipe or program is a new image.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::EngineError;

pub(crate) const DOCKERFILE: &str = include_str!("../../../images/base/Dockerfile");
pub(crate) const SETUP: &str = include_str!("../../../images/base/setup.sh");
pub(crate) const PACKAGES: &str = include_str!("../../../images/base/packages.txt");

/// The repository of workspaces' base image.
pub(crate) const WORKSPACE: &str = "reprise/workspace";

const PROGRAM: &str = "reprise/program";

fn short(hash: Sha256) -> String {
    hash.finalize()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The tag of workspaces' base image.
pub(crate) fn workspace_tag() -> String {
    let mut recipe = Sha256::new();
    for part in [DOCKERFILE, SETUP, PACKAGES] {
        recipe.update(part);
    }
    short(recipe)
}

/// Workspaces' base image: a Debian with what modules' scripts and agents call.
#[must_use]
pub fn workspace_image() -> String {
    format!("{WORKSPACE}:{}", workspace_tag())
}

/// The image of this program alone, for the pods of a cluster.
///
/// # Errors
/// If the program cannot be read.
pub fn program_image(program: &Path) -> Result<String, EngineError> {
    let mut hash = Sha256::new();
    File::open(program)
        .and_then(|mut file| io::copy(&mut file, &mut hash))
        .map_err(EngineError::io("read", program))?;
    Ok(format!("{PROGRAM}:{}", short(hash)))
}

/// An image's name in a registry: as it is where none is named.
#[must_use]
pub fn in_registry(registry: Option<&str>, image: &str) -> String {
    match registry {
        Some(registry) => format!("{}/{image}", registry.trim_end_matches('/')),
        None => image.to_owned(),
    }
}
