//! Agents from npm's registry: a platform package is a tarball with an integrity hash, and needs no node.

use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use npmrc_config_rs::NpmrcConfig;
use reprise_engine::Progress;

use super::download::{self, Pin};
use super::lock::NpmPin;
use super::{Chain, Tool, Tools, Tried};

pub(super) async fn find(
    tools: &Tools,
    name: &str,
    pin: &NpmPin,
    progress: Progress<'_>,
) -> Result<Tool, Tried> {
    let mut chain = Chain::of(format!("{name} {}", pin.version));
    let entry = format!("npm/{name}/{}", pin.version);
    // npm packs a package's files below one directory, mostly called so
    // (<https://docs.npmjs.com/cli/commands/npm-pack>).
    let tool = |root: &Path, from: &str| Tool {
        path: root.join("package"),
        version: pin.version.to_string(),
        from: from.to_owned(),
    };
    let root = tools.cache.entry(&entry);
    if root.join("package").is_dir() {
        return Ok(tool(&root, "from the cache"));
    }
    chain.says("cache", "not there");
    if !tools.obtain {
        return Err(chain.broken());
    }
    progress(&format!("downloading {name} {}", pin.version));
    let fetched = async {
        let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
        let unpacked = fetch(name, pin, workshop.path()).await?;
        if !unpacked.join("package").is_dir() {
            return Err("it has no directory `package`".to_owned());
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
async fn fetch(name: &str, pin: &NpmPin, workshop: &Path) -> Result<PathBuf, String> {
    let config = NpmrcConfig::load().map_err(|error| format!("npm's configuration: {error}"))?;
    let registry = config.registry_for(name);
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
    let short = name.rsplit('/').next().unwrap_or(name);
    let url = format!(
        "{}/{}/-/{short}-{}.tgz",
        registry.as_str().trim_end_matches('/'),
        name,
        pin.version
    );
    let tarball = workshop.join("package.tgz");
    let pin = Pin::Integrity(pin.integrity.clone());
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
