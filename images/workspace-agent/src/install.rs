//! What an init container does: puts this program into a directory that the workspace's container shares, and unpacks there
//! what the workspace's start needs.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backon::{BlockingRetryable, ConstantBuilder};
use thiserror::Error;

use crate::plain;

/// How often a depot that does not answer yet is asked again, ten times a second.
const ATTEMPTS: usize = 600;

/// Why a workspace could not be furnished.
#[derive(Debug, Error)]
pub enum InstallError {
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The depot does not have it.
    #[error("cannot fetch {url}: {source}")]
    Fetch {
        /// What.
        url: String,
        /// Why not.
        source: reqwest::Error,
    },
}

/// Installs this program below `into` under its names, and unpacks there what `from` has under `keys`.
pub(crate) fn main(
    from: &str,
    into: &Path,
    names: &[String],
    keys: &[String],
) -> Result<(), InstallError> {
    let bin = into.join("bin");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| InstallError::Write { path, source }
    };
    fs::create_dir_all(&bin).map_err(failed(&bin))?;
    let program = bin.join("reprise");
    fs::copy("/proc/self/exe", &program).map_err(failed(&program))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(failed(&program))?;
    for name in names {
        let link = bin.join(name);
        fs::hard_link(&program, &link).map_err(failed(&link))?;
    }
    let client = plain::client(None).map_err(|source| InstallError::Fetch {
        url: from.to_owned(),
        source,
    })?;
    for key in keys {
        let url = format!("{from}/{key}");
        let fetch = || {
            client
                .get(&url)
                .send()
                .and_then(reqwest::blocking::Response::error_for_status)
        };
        let answer = fetch
            .retry(
                ConstantBuilder::default()
                    .with_delay(Duration::from_millis(100))
                    .with_max_times(ATTEMPTS),
            )
            // A service's address leads somewhere a moment after its pod is up.
            .when(reqwest::Error::is_connect)
            .call()
            .map_err(|source| InstallError::Fetch {
                url: url.clone(),
                source,
            })?;
        let mut archive = tar::Archive::new(answer);
        archive.set_preserve_permissions(true);
        archive.set_overwrite(true);
        archive.unpack(into).map_err(failed(into))?;
    }
    Ok(())
}
