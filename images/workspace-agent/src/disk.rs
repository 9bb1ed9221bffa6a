//! Fills a volume to its last byte, and frees it again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

const FILE: &str = ".reprise-ballast";

/// A volume larger than this is not filled: it is no quota's, but the machine's.
const LIMIT: u64 = 2 << 30;

/// Writes until the volume of `dir` is full, or removes what was written so. Prints how many bytes were.
///
/// # Errors
/// If the volume is too large to be a quota's, or something but a full disk keeps it from being written to.
pub(crate) fn main(dir: &Path, free: bool) -> io::Result<()> {
    let path = dir.join(FILE);
    let bytes = if free {
        let bytes = path.metadata()?.len();
        fs::remove_file(&path)?;
        bytes
    } else {
        fill(&path)?
    };
    println!("{}", json!({ "bytes": bytes }));
    Ok(())
}

fn fill(path: &Path) -> io::Result<u64> {
    let mut file = File::create(path)?;
    let mut written = 0;
    let mut part = vec![0u8; 1 << 20];
    while !part.is_empty() {
        match file.write(&part) {
            Ok(bytes) => written += bytes as u64,
            // Smaller and smaller, until not a byte fits.
            Err(error) if full(&error) => part.truncate(part.len() / 2),
            Err(error) => return Err(error),
        }
        if written > LIMIT {
            fs::remove_file(path)?;
            return Err(io::Error::other(
                "the home has no quota: more than 2 GiB could be written",
            ));
        }
    }
    file.sync_all()?;
    Ok(written)
}

fn full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
