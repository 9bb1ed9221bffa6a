//! Agents from npm's registry: a platform package is a tarball with an integrity hash, and needs no node.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use npmrc_config_rs::NpmrcConfig;
use reprise_engine::Progress;
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};

use super::download::{self, Pin};
use super::{Chain, Tool, Tools, Tried};

/// What `images/agents.lock` pins of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NpmPin {
    /// The version.
    pub version: Version,
    /// The tarball's integrity, as npm's registry has it: `sha512-…`.
    pub integrity: String,
}

/// A package, pinned, and the program in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpmPackage {
    /// `@scope/name`.
    pub name: String,
    /// Its pin.
    pub pin: NpmPin,
    /// The program's path in the package.
    pub program: PathBuf,
}

/// The version of a package that this program measures.
pub(crate) fn pin(package: &str) -> Option<NpmPin> {
    pins().remove(package)
}

fn pins() -> BTreeMap<String, NpmPin> {
    serde_json::from_str(include_str!("../../../../images/agents.lock"))
        .expect("the lock file that is compiled in was read by a test")
}

pub(super) async fn find(
    tools: &Tools,
    package: &NpmPackage,
    progress: Progress<'_>,
) -> Result<Tool, Tried> {
    let NpmPackage { name, pin, program } = package;
    let mut chain = Chain::of(format!("{name} {}", pin.version));
    let entry = format!("npm/{name}/{}", pin.version);
    let tool = |root: &Path, from: &str| Tool {
        path: root.join(program),
        version: pin.version.to_string(),
        from: from.to_owned(),
    };
    let root = tools.cache.entry(&entry);
    if root.join(program).is_file() {
        return Ok(tool(&root, "from the cache"));
    }
    chain.says("cache", "not there");
    if !tools.obtain {
        return Err(chain.broken());
    }
    progress(&format!("downloading {name} {}", pin.version));
    let fetched = async {
        let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
        let unpacked = fetch(package, workshop.path()).await?;
        if !unpacked.join(program).is_file() {
            return Err(format!("it has no {}", program.display()));
        }
        tools
            .cache
            .keep(&unpacked, &entry)
            .map_err(|error| error.to_string())
    };
    match fetched.await {
        Ok(root) => Ok(tool(&root, "npm's registry")),
        Err(why) => {
            chain.says("npm's registry", why);
            Err(chain.broken())
        }
    }
}

/// Downloads and unpacks a package with the registry and credentials that the user's npm configuration names.
async fn fetch(package: &NpmPackage, workshop: &Path) -> Result<PathBuf, String> {
    let config = NpmrcConfig::load().map_err(|error| format!("npm's configuration: {error}"))?;
    let registry = config.registry_for(&package.name);
    let credentials = config.credentials_for(&registry);
    let authorization = credentials.as_ref().and_then(|credentials| {
        credentials
            .token()
            .map(|token| format!("Bearer {token}"))
            .or_else(|| {
                let (user, password) = credentials.username_password()?;
                Some(format!(
                    "Basic {}",
                    STANDARD.encode(format!("{user}:{password}"))
                ))
            })
    });
    // Where every registry of npm's kind keeps a package's tarball.
    let short = package.name.rsplit('/').next().unwrap_or(&package.name);
    let url = format!(
        "{}/{}/-/{short}-{}.tgz",
        registry.as_str().trim_end_matches('/'),
        package.name,
        package.pin.version
    );
    let tarball = workshop.join("package.tgz");
    let pin = Pin::Integrity(package.pin.integrity.clone());
    download::fetch(&url, authorization.as_deref(), &pin, &tarball)
        .await
        .map_err(|error| error.to_string())?;
    let unpacked = workshop.join("unpacked");
    let unpack = {
        let unpacked = unpacked.clone();
        move || -> std::io::Result<()> {
            tar::Archive::new(GzDecoder::new(File::open(tarball)?)).unpack(unpacked)
        }
    };
    tokio::task::spawn_blocking(unpack)
        .await
        .expect("unpacking does not panic")
        .map_err(|error| format!("cannot unpack {url}: {error}"))?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_is_well_formed() {
        for (name, pin) in pins() {
            assert!(pin.integrity.starts_with("sha512-"), "{name}");
        }
    }
}
