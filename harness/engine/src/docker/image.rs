//! The base image of a workspace: a Debian with what modules' scripts and agents call.
//!
//! Built from images/base/Dockerfile where an image registry answers, and otherwise by debootstrap from Debian's own
//! package mirror, which needs root. Its tag names the recipe, so a changed recipe is a new image.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bollard::Docker as Client;
use bollard::models::BuildInfo;
use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use nix::unistd::geteuid;
use tokio::io::{AsyncRead, AsyncReadExt, DuplexStream};
use tokio::process::Command;
use tokio_util::io::SyncIoBridge;

use crate::images::{DOCKERFILE, PACKAGES, SETUP, WORKSPACE, workspace_image, workspace_tag};
use crate::{EngineError, Progress, TOOLS_DIR};

const SUITE: &str = "bookworm";

fn failed(why: impl std::fmt::Display) -> EngineError {
    EngineError::Image(why.to_string())
}

/// Builds the image if the daemon does not have it.
pub(super) async fn ensure(client: &Client, progress: Progress<'_>) -> Result<(), EngineError> {
    if client.inspect_image(&workspace_image()).await.is_ok() {
        return Ok(());
    }
    progress("building the base image from images/base/Dockerfile");
    let from_registry = match build(client).await {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if !geteuid().is_root() {
        return Err(failed(format!(
            "the Dockerfile did not build ({from_registry}), and debootstrap needs root"
        )));
    }
    progress(
        "no image registry answers; building the base image with debootstrap (about a minute)",
    );
    debootstrap(client).await.map_err(|error| {
        failed(format!(
            "the Dockerfile did not build ({from_registry}); {error}"
        ))
    })
}

async fn build(client: &Client) -> Result<(), EngineError> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in [
        ("Dockerfile", DOCKERFILE),
        ("setup.sh", SETUP),
        ("packages.txt", PACKAGES),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        tar.append_data(&mut header, name, content.as_bytes())
            .map_err(failed)?;
    }
    let tar = tar.into_inner().map_err(failed)?;
    let options = BuildImageOptionsBuilder::new()
        .t(&workspace_image())
        .rm(true)
        .build();
    let body = bollard::body_full(tar.into());
    built(client.build_image(options, None, Some(body))).await
}

/// Waits for the end of a build.
async fn built(
    steps: impl Stream<Item = Result<BuildInfo, bollard::errors::Error>>,
) -> Result<(), EngineError> {
    let mut steps = std::pin::pin!(steps);
    while let Some(step) = steps.try_next().await.map_err(failed)? {
        if let Some(error) = step.error_detail.and_then(|detail| detail.message) {
            return Err(failed(error));
        }
    }
    Ok(())
}

async fn debootstrap(client: &Client) -> Result<(), EngineError> {
    let dir = tempfile::tempdir().map_err(failed)?;
    let root = dir.path().join("root");
    let packages: Vec<&str> = PACKAGES.split_whitespace().collect();
    run(Command::new("debootstrap")
        .args(["--variant=minbase", "--include"])
        .arg(packages.join(","))
        .arg(SUITE)
        .arg(&root))
    .await?;
    let setup = root.join("setup.sh");
    tokio::fs::write(&setup, SETUP).await.map_err(failed)?;
    run(Command::new("chroot")
        .arg(&root)
        .args(["/bin/bash", "/setup.sh"]))
    .await?;
    tokio::fs::remove_file(&setup).await.map_err(failed)?;
    import(client, root).await
}

/// Runs a command; its last lines are the error if it fails.
async fn run(command: &mut Command) -> Result<(), EngineError> {
    let name = format!("{}", command.as_std().get_program().display());
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| {
            failed(format!(
                "cannot run {name}: {error} (install the package {name})"
            ))
        })?;
    if output.status.success() {
        return Ok(());
    }
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let tail = lines[lines.len().saturating_sub(10)..].join("\n");
    Err(failed(format!(
        "{name} ended with {}:\n{tail}",
        output.status
    )))
}

type Context = tar::Builder<SyncIoBridge<DuplexStream>>;

fn text(tar: &mut Context, name: &str, content: &str, mode: u32) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    tar.append_data(&mut header, name, content.as_bytes())
}

/// Builds an image from what `pack` puts into its context. It may be larger than the memory: the context is written while
/// the daemon reads it.
async fn packed(
    client: &Client,
    tag: &str,
    pack: impl FnOnce(&mut Context) -> io::Result<()> + Send + 'static,
) -> Result<(), EngineError> {
    let (reader, writer) = tokio::io::duplex(256 * 1024);
    let packing = tokio::task::spawn_blocking(move || {
        let mut tar = tar::Builder::new(SyncIoBridge::new(writer));
        tar.follow_symlinks(false);
        // Docker does not read GNU's form of files with holes.
        tar.sparse(false);
        pack(&mut tar)?;
        tar.into_inner()?.shutdown()
    });
    let options = BuildImageOptionsBuilder::new().t(tag).rm(true).build();
    let body = bollard::body_try_stream(pieces(reader));
    built(client.build_image(options, None, Some(body))).await?;
    packing
        .await
        .expect("packing does not panic")
        .map_err(failed)
}

/// Makes an image of the base image with directories and programs in it, under `tag`.
pub(super) async fn layer(
    client: &Client,
    tag: &str,
    directories: &BTreeMap<PathBuf, PathBuf>,
    programs: &[(String, String)],
) -> Result<(), EngineError> {
    let dockerfile = format!(
        "FROM {}\nCOPY --chown=root:root files/ /\nENV PATH={TOOLS_DIR}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
        workspace_image()
    );
    let directories = directories.clone();
    let programs = programs.to_vec();
    packed(client, tag, move |tar| {
        text(tar, "Dockerfile", &dockerfile, 0o644)?;
        for (name, script) in &programs {
            text(tar, &format!("files{TOOLS_DIR}/{name}"), script, 0o755)?;
        }
        for (target, source) in &directories {
            tar.append_dir_all(format!("files{}", target.display()), source)?;
        }
        Ok(())
    })
    .await
}

/// Makes an image of nothing but a program, which is what it runs.
pub(super) async fn program(client: &Client, tag: &str, program: &Path) -> Result<(), EngineError> {
    let dockerfile = "FROM scratch\nCOPY reprise /reprise\nENTRYPOINT [\"/reprise\"]\n";
    let program = program.canonicalize().map_err(failed)?;
    packed(client, tag, move |tar| {
        text(tar, "Dockerfile", dockerfile, 0o644)?;
        tar.append_path_with_name(&program, "reprise")
    })
    .await
}

async fn import(client: &Client, root: PathBuf) -> Result<(), EngineError> {
    let mut tar = Command::new("tar")
        .arg("-C")
        .arg(&root)
        .args(["-c", "."])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let stdout = tar.stdout.take().expect("it was asked for");
    let options = CreateImageOptionsBuilder::new()
        .from_src("-")
        .repo(WORKSPACE)
        .tag(&workspace_tag())
        .changes(vec![
            "USER coder".to_owned(),
            "WORKDIR /home/coder".to_owned(),
            "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        ])
        .build();
    let body = bollard::body_try_stream(pieces(stdout));
    let mut steps = Box::pin(client.create_image(Some(options), Some(body), None));
    while let Some(step) = steps.next().await {
        let step = step.map_err(failed)?;
        if let Some(error) = step.error_detail.and_then(|detail| detail.message) {
            return Err(failed(error));
        }
    }
    let status = tar.wait().await.map_err(failed)?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(format!("tar ended with {status}")))
    }
}

fn pieces(
    source: impl AsyncRead + Unpin + Send + 'static,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold(source, |mut source| async move {
        let mut buffer = vec![0; 256 * 1024];
        let read = source.read(&mut buffer).await?;
        buffer.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(buffer), source)))
    })
}
