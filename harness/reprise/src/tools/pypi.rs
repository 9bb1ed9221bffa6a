//! Agents from Python's package index: pip installs what is pinned into a directory, for the workspace's Python, not for
//! the one that runs pip.

use std::fs;

use reprise_engine::Progress;
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::lock::PypiPin;
use super::{Chain, Tool, Tools, Tried, on_path, run};

pub(super) async fn find(
    tools: &Tools,
    name: &str,
    pin: &PypiPin,
    progress: Progress<'_>,
) -> Result<Tool, Tried> {
    let mut chain = Chain::of(format!("{name} {}", pin.version));
    let mut requirements = pin.requirements.join("\n");
    requirements.push('\n');
    // A pin of something that it requires may move while its own version stays.
    let digest = Sha256::digest(&requirements);
    let entry = format!(
        "pypi/{name}/{}-{:02x}{:02x}{:02x}",
        pin.version, digest[0], digest[1], digest[2]
    );
    let tool = |from: &str, path| Tool {
        path,
        version: pin.version.to_string(),
        from: from.to_owned(),
    };
    let cached = tools.cache.entry(&entry);
    if cached.is_dir() {
        return Ok(tool("from the cache", cached));
    }
    chain.says("cache", "not there");
    if !tools.obtain {
        return Err(chain.broken());
    }
    let Some(python) = on_path("python3") else {
        chain.says("pip", "python3 is not on PATH");
        return Err(chain.broken());
    };
    progress(&format!("installing {name} {} with pip", pin.version));
    let installed = async {
        let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
        let listed = workshop.path().join("requirements.txt");
        fs::write(&listed, requirements).map_err(|error| error.to_string())?;
        let target = workshop.path().join("installed");
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--disable-pip-version-check", "--require-hashes"])
            .args(["--only-binary", ":all:", "--implementation", "cp"])
            .args(["--python-version", &pin.python])
            .arg("--target")
            .arg(&target)
            .arg("--requirement")
            .arg(&listed);
        for platform in ["manylinux_2_28", "manylinux_2_17", "manylinux2014"] {
            pip.arg("--platform")
                .arg(format!("{platform}_{}", std::env::consts::ARCH));
        }
        run(&mut pip).await.map_err(|error| error.to_string())?;
        tools
            .cache
            .keep(&target, &entry)
            .map_err(|error| error.to_string())
    };
    match installed.await {
        Ok(path) => Ok(tool("installed with pip", path)),
        Err(why) => {
            chain.says("pip", why);
            Err(chain.broken())
        }
    }
}
