//! The texts of a module: every file of it that is one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use reprise_model::ModuleRef;

use super::{Source, SourceError};

impl Source {
    /// Each of a module's texts by its path below the module: of a release where one is named, else of the working tree.
    ///
    /// # Errors
    /// If the module is not there, or cannot be read.
    pub async fn texts(&self, module: &ModuleRef) -> Result<BTreeMap<String, String>, SourceError> {
        if module.version.is_none() {
            return of_tree(&self.tree(module)?);
        }
        of_archive(&self.archive(module).await?).map_err(|source| SourceError::Io {
            path: PathBuf::from(format!("the archive of {module}")),
            source,
        })
    }
}

fn of_tree(dir: &Path) -> Result<BTreeMap<String, String>, SourceError> {
    let mut texts = BTreeMap::new();
    for entry in ignore::WalkBuilder::new(dir).hidden(false).build() {
        let entry = entry.map_err(|error| SourceError::Io {
            path: dir.to_owned(),
            source: io::Error::other(error),
        })?;
        let path = entry.path();
        let below = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        if path.is_file()
            && let Ok(text) = fs::read_to_string(path)
        {
            texts.insert(below, text);
        }
    }
    Ok(texts)
}

fn of_archive(archive: &[u8]) -> io::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.display().to_string();
        let mut text = String::new();
        if entry.header().entry_type().is_file() && entry.read_to_string(&mut text).is_ok() {
            // An archive of a directory may begin each name so.
            let below = path.strip_prefix("./").unwrap_or(&path);
            texts.insert(below.to_owned(), text);
        }
    }
    Ok(texts)
}
