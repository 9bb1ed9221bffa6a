//! What starts need of this machine: packed, and handed to the run's gateway once, from which each start fetches it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::{EngineError, InjectedFile, Mount, START_FILES};

/// Files up to this size go with the start they are for: they are written for it alone.
const OWN: u64 = 64 * 1024;

/// What a start's mounts and files become.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// Other names of this program.
    pub(super) names: Vec<String>,
    /// What many starts share, by key.
    pub(super) shared: BTreeMap<String, Mount>,
    /// What is this start's own, as an archive.
    pub(super) own: Vec<u8>,
}

/// Where something lies below the directory that is unpacked into.
fn below(target: &Path) -> Result<&Path, EngineError> {
    target.strip_prefix(START_FILES).map_err(|_| {
        EngineError::NotStarted(format!(
            "{} cannot be shown in a pod: only what lies below {START_FILES} can",
            target.display()
        ))
    })
}

/// Sorts what a start needs. `program` is this program, which its image has.
pub(super) fn pack(
    program: &Path,
    mounts: &[Mount],
    files: &[InjectedFile],
) -> Result<Packed, EngineError> {
    let mut packed = Packed::default();
    let mut own = tar::Builder::new(Vec::new());
    own.follow_symlinks(true);
    for mount in mounts {
        let at = below(&mount.target)?;
        if mount.source == program {
            let name = mount.target.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            if name != "reprise" {
                packed.names.push(name);
            }
            continue;
        }
        let meta =
            std::fs::metadata(&mount.source).map_err(EngineError::io("read", &mount.source))?;
        if meta.is_file() && meta.len() <= OWN {
            own.append_path_with_name(&mount.source, at)
                .map_err(EngineError::io("pack", &mount.source))?;
        } else {
            packed.shared.insert(key(mount, &meta), mount.clone());
        }
    }
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(0o644);
        own.append_data(&mut header, &file.name, file.content.as_bytes())
            .map_err(EngineError::io("pack", &file.name))?;
    }
    packed.own = own
        .into_inner()
        .map_err(EngineError::io("pack", START_FILES))?;
    Ok(packed)
}

/// Names what is shared: the same file or directory at the same place.
fn key(mount: &Mount, meta: &std::fs::Metadata) -> String {
    let mut hash = Sha256::new();
    for part in [&mount.source, &mount.target] {
        hash.update(part.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    hash.update(meta.size().to_le_bytes());
    hash.update(meta.mtime_nsec().to_le_bytes());
    hash.update(meta.mtime().to_le_bytes());
    hash.finalize()[..10]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Packs a mount into a file, so that its size is known before it is sent.
pub(super) async fn archive(mount: &Mount) -> Result<tokio::fs::File, EngineError> {
    let mount = mount.clone();
    let packing = tokio::task::spawn_blocking(move || {
        let at = below(&mount.target)?;
        let io = |error: io::Error| EngineError::io("pack", &mount.source)(error);
        let mut tar = tar::Builder::new(tempfile::tempfile().map_err(io)?);
        tar.follow_symlinks(false);
        if mount.source.is_dir() {
            tar.append_dir_all(at, &mount.source)
        } else {
            tar.append_path_with_name(&mount.source, at)
        }
        .map_err(io)?;
        let mut file = tar.into_inner().map_err(io)?;
        io::Seek::rewind(&mut file).map_err(io)?;
        Ok(file)
    });
    packing
        .await
        .expect("packing does not panic")
        .map(tokio::fs::File::from_std)
}
