//! Where tools are kept: made in a place of their own first, so that a half-made tool is never found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of kept tools.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// A cache below `root`.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The user's cache: `REPRISE_CACHE`, or `reprise` in the user's cache directory.
    #[must_use]
    pub fn of_user() -> Self {
        let root = std::env::var_os("REPRISE_CACHE").map_or_else(
            || {
                dirs::cache_dir()
                    .unwrap_or_else(std::env::temp_dir)
                    .join("reprise")
            },
            PathBuf::from,
        );
        Self { root }
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The place of an entry, whether it is there or not.
    #[must_use]
    pub fn entry(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A directory to make an entry in; it goes away unless it is kept.
    pub(super) fn workshop(&self) -> io::Result<tempfile::TempDir> {
        fs::create_dir_all(&self.root)?;
        tempfile::Builder::new()
            .prefix(".making-")
            .tempdir_in(&self.root)
    }

    /// Moves what was made to its entry. If another process was first, its work stands.
    pub(super) fn keep(&self, made: &Path, name: &str) -> io::Result<PathBuf> {
        let entry = self.entry(name);
        if let Some(parent) = entry.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::rename(made, &entry) {
            Err(_) if entry.exists() => Ok(entry),
            Err(error) => Err(error),
            Ok(()) => Ok(entry),
        }
    }
}
