//! Terraform, or OpenTofu, which does the same here and may be downloaded and built by anyone.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use reprise_engine::Progress;
use serde::Deserialize;
use tokio::process::Command;

use super::command::run;
use super::download::{self, Pin};
use super::{Chain, Tool, Tools, Tried, go, on_path};

/// The release that is downloaded, with its archive's checksum as OpenTofu publishes it.
const RELEASE: &str = "1.8.5";
const ARCHIVE: Option<(&str, Pin)> = if cfg!(target_arch = "x86_64") {
    Some((
        "https://github.com/opentofu/opentofu/releases/download/v1.8.5/tofu_1.8.5_linux_amd64.zip",
        Pin::Sha256("e2951ba6be8ae9427aabbd5c6f243855e8b526cb2ae6bc33a05dae22d7e82632"),
    ))
} else {
    None
};

/// The release that is built where no archive can be had.
const BUILT: &str = "v1.10.10";

/// Terraform in a directory that holds its configuration, `terraformrc`, and nobody at a terminal.
#[must_use]
pub fn terraform_in(program: &Path, dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(dir)
        .args(args)
        .env("TF_CLI_CONFIG_FILE", dir.join("terraformrc"))
        .env("TF_IN_AUTOMATION", "1")
        .env("CHECKPOINT_DISABLE", "1");
    command
}

#[derive(Deserialize)]
struct Version {
    terraform_version: String,
}

async fn version(program: &Path) -> Result<String, String> {
    let printed = run(Command::new(program).args(["version", "-json"]))
        .await
        .map_err(|error| error.to_string())?;
    serde_json::from_str::<Version>(&printed)
        .map(|version| version.terraform_version)
        .map_err(|error| format!("{} version -json: {error}", program.display()))
}

pub(super) async fn find(tools: &Tools, progress: Progress<'_>) -> Result<Tool, Tried> {
    let mut chain = Chain::of("Terraform or OpenTofu");
    for name in ["terraform", "tofu"] {
        let Some(path) = on_path(name) else {
            chain.says("PATH", format!("no {name}"));
            continue;
        };
        match version(&path).await {
            Ok(version) => {
                let from = format!("{name} on PATH");
                return Ok(Tool {
                    path,
                    version,
                    from,
                });
            }
            Err(why) => chain.says("PATH", why),
        }
    }
    for (entry, from) in [
        (
            format!("opentofu-{RELEASE}"),
            "OpenTofu's release, from the cache",
        ),
        (
            format!("opentofu-{BUILT}"),
            "OpenTofu built with Go, from the cache",
        ),
    ] {
        let path = tools.cache.entry(&entry);
        if path.is_file()
            && let Ok(version) = version(&path).await
        {
            let from = from.to_owned();
            return Ok(Tool {
                path,
                version,
                from,
            });
        }
    }
    chain.says("cache", "not there");
    if !tools.obtain {
        return Err(chain.broken());
    }
    match ARCHIVE {
        None => chain.says("release", "no checksum is pinned for this processor"),
        Some((url, pin)) => {
            progress(&format!("downloading OpenTofu {RELEASE}"));
            match download(tools, url, &pin).await {
                Ok(tool) => return Ok(tool),
                Err(why) => chain.says("release", why),
            }
        }
    }
    if on_path("go").is_none() {
        chain.says("Go", "the Go toolchain is not installed");
        return Err(chain.broken());
    }
    progress(&format!("building OpenTofu {BUILT} with Go (some minutes)"));
    match build(tools).await {
        Ok(tool) => Ok(tool),
        Err(why) => {
            chain.says("Go", why);
            Err(chain.broken())
        }
    }
}

async fn download(tools: &Tools, url: &str, pin: &Pin) -> Result<Tool, String> {
    let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
    let archive = workshop.path().join("tofu.zip");
    download::fetch(url, None, pin, &archive)
        .await
        .map_err(|error| error.to_string())?;
    let program = workshop.path().join("tofu");
    let unpack = || -> Result<(), Box<dyn std::error::Error>> {
        let mut archive = zip::ZipArchive::new(File::open(&archive)?)?;
        io::copy(&mut archive.by_name("tofu")?, &mut File::create(&program)?)?;
        executable(&program)?;
        Ok(())
    };
    unpack().map_err(|error| format!("cannot unpack {url}: {error}"))?;
    kept(
        tools,
        &program,
        &format!("opentofu-{RELEASE}"),
        "OpenTofu's release",
    )
    .await
}

async fn build(tools: &Tools) -> Result<Tool, String> {
    let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
    let program = workshop.path().join("tofu");
    let module = "github.com/opentofu/opentofu";
    let package = "github.com/opentofu/opentofu/cmd/tofu";
    go::build_release(module, BUILT, package, workshop.path(), &program)
        .await
        .map_err(|error| error.to_string())?;
    kept(
        tools,
        &program,
        &format!("opentofu-{BUILT}"),
        "OpenTofu built with Go",
    )
    .await
}

async fn kept(tools: &Tools, program: &Path, entry: &str, from: &str) -> Result<Tool, String> {
    let path = tools
        .cache
        .keep(program, entry)
        .map_err(|error| error.to_string())?;
    let version = version(&path).await?;
    let from = from.to_owned();
    Ok(Tool {
        path,
        version,
        from,
    })
}

pub(super) fn executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
