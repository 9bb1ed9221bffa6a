//! Agents from npm's registry: a platform package is a tarball with an integrity hash, and needs no node.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use npmrc_config_rs::NpmrcConfig;
use reprise_engine::Progress;
use semver::Version;
use serde::Deserialize;

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

/// The registry of a package, and what it asks for, as the user's npm configuration has them.
fn registry(name: &str) -> Result<(String, Option<String>), String> {
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
    let registry = registry.as_str().trim_end_matches('/').to_owned();
    Ok((registry, authorization))
}

/// The newest release of a package, of the same build where its versions are one for each platform.
///
/// # Errors
/// If the registry does not tell.
pub async fn newest(name: &str, now: &Version) -> Result<NpmPin, String> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(rename = "dist-tags")]
        tags: BTreeMap<String, String>,
        versions: BTreeMap<String, Released>,
    }
    #[derive(Deserialize)]
    struct Released {
        dist: Dist,
    }
    #[derive(Deserialize)]
    struct Dist {
        #[serde(default)]
        integrity: Option<String>,
    }
    let (registry, authorization) = registry(name)?;
    // https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
    let url = format!("{registry}/{}", name.replace('/', "%2f"));
    let mut request = reqwest::Client::new()
        .get(&url)
        .header("accept", "application/vnd.npm.install-v1+json");
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    let document: Document = async { request.send().await?.error_for_status()?.json().await }
        .await
        .map_err(|error: reqwest::Error| error.to_string())?;
    let latest = document
        .tags
        .get("latest")
        .ok_or("it has no latest version")?;
    let wanted = if now.pre.is_empty() {
        latest.clone()
    } else {
        // `0.169.0-linux-x64`: a platform's build of the version before the dash.
        format!("{latest}-{}", now.pre)
    };
    let released = document
        .versions
        .get(&wanted)
        .ok_or_else(|| format!("it has no version {wanted}"))?;
    Ok(NpmPin {
        version: Version::parse(&wanted).map_err(|error| error.to_string())?,
        integrity: released
            .dist
            .integrity
            .clone()
            .ok_or_else(|| format!("{wanted} has no integrity hash"))?,
        earlier: None,
    })
}

/// Downloads and unpacks a package.
async fn fetch(name: &str, pin: &NpmPin, workshop: &Path) -> Result<PathBuf, String> {
    let (registry, authorization) = registry(name)?;
    // Where every registry of npm's kind keeps a package's tarball.
    let short = name.rsplit('/').next().unwrap_or(name);
    let url = format!("{}/{}/-/{short}-{}.tgz", registry, name, pin.version);
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
