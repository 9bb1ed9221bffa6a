//! The probe: what lies below a directory, without following a link out of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use reprise_model::{ByteSize, DatabaseFacts, FileKind, Manifest, ManifestEntry, Snapshot, Stamp};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use sha2::{Digest, Sha256};
use thiserror::Error;
use walkdir::WalkDir;

use crate::sqlite;

/// How much of a file is held in memory at once.
const CHUNK: usize = 64 * 1024;

/// Why a directory could not be looked at.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The root itself.
    #[error("cannot open the directory {}: {source}", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Nobody takes the result.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

pub(crate) fn main(root: &Path) -> Result<(), ProbeError> {
    let snapshot = probe(root)?;
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut out, &snapshot).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Looks at everything below `root`. Links are recorded and never followed, pipes and devices never opened; what
/// vanishes or cannot be read while the probe looks stands in the manifest with the reason.
///
/// # Errors
/// If `root` is no directory that can be opened.
pub fn probe(root: &Path) -> Result<Snapshot, ProbeError> {
    let at = Stamp {
        us: 0,
        wall: jiff::Timestamp::now(),
    };
    let anchor = openat(
        CWD,
        root,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|source| ProbeError::Root {
        path: root.to_owned(),
        source: source.into(),
    })?;
    let found: Vec<(PathBuf, ManifestEntry)> = WalkDir::new(root)
        .min_depth(1)
        .follow_links(false)
        .same_file_system(false)
        .into_iter()
        .map(|entry| seen(root, entry))
        .collect();
    let looked_at: Vec<(String, ManifestEntry, bool)> = found
        .into_par_iter()
        .map(|(path, mut entry)| {
            let database = read(&anchor, root, &path, &mut entry);
            (shown(path.as_os_str()), entry, database)
        })
        .collect();
    let mut manifest = Manifest::new();
    let mut databases: BTreeMap<String, DatabaseFacts> = BTreeMap::new();
    for (path, entry, database) in looked_at {
        if database {
            databases.insert(path.clone(), sqlite::facts(&anchor, Path::new(&path)));
        }
        manifest.insert(path, entry);
    }
    Ok(Snapshot {
        at,
        root: root.display().to_string(),
        manifest,
        databases,
    })
}

/// A directory entry before its content is read; its path is relative to the root.
fn seen(root: &Path, entry: walkdir::Result<walkdir::DirEntry>) -> (PathBuf, ManifestEntry) {
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
    let unreadable = |path: PathBuf, error: String| {
        let entry = ManifestEntry {
            kind: FileKind::Other,
            size: ByteSize(0),
            mode: 0,
            mtime_ns: 0,
            hash: None,
            unreadable: Some(error),
        };
        (path, entry)
    };
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => {
            return unreadable(relative(error.path().unwrap_or(root)), error.to_string());
        }
    };
    let path = relative(entry.path());
    let metadata = match entry.path().symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) => return unreadable(path, error.to_string()),
    };
    let kind = metadata.file_type();
    let kind = if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Dir
    } else if kind.is_symlink() {
        FileKind::Link
    } else {
        debug_assert!(
            kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
        );
        FileKind::Other
    };
    let found = ManifestEntry {
        kind,
        size: ByteSize(metadata.size()),
        mode: metadata.permissions().mode() & 0o7777,
        mtime_ns: metadata
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(metadata.mtime_nsec()),
        hash: None,
        unreadable: None,
    };
    (path, found)
}

/// Hashes a file or a link's target; tells whether the file is an `SQLite` database.
fn read(anchor: &OwnedFd, root: &Path, path: &Path, entry: &mut ManifestEntry) -> bool {
    match entry.kind {
        FileKind::Dir | FileKind::Other => false,
        FileKind::Link => {
            match std::fs::read_link(root.join(path)) {
                Ok(target) => entry.hash = Some(hex(Sha256::digest(target.as_os_str().as_bytes()))),
                Err(error) => entry.unreadable = Some(error.to_string()),
            }
            false
        }
        FileKind::File => match open(anchor, path).and_then(hash) {
            Ok((digest, size, database)) => {
                entry.hash = Some(digest);
                // The file may have grown since it was listed; the hash is of what was read.
                entry.size = ByteSize(size);
                database
            }
            Err(error) => {
                entry.unreadable = Some(error.to_string());
                false
            }
        },
    }
}

/// Opens a regular file below the anchor without following any link on the way
/// (<https://man7.org/linux/man-pages/man2/openat2.2.html>). Non-blocking, so that a pipe put in a file's place
/// cannot hold the probe up.
pub(crate) fn open(anchor: &OwnedFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(openat2(anchor, path, flags, Mode::empty(), resolve)?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("no longer a regular file"))
    }
}

fn hash(mut file: File) -> io::Result<(String, u64, bool)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut size = 0;
    let mut database = false;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if size == 0 {
            database = buffer[..read].starts_with(sqlite::MAGIC);
        }
        size += read as u64;
        hasher.update(&buffer[..read]);
    }
    Ok((hex(hasher.finalize()), size, database))
}

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A path as text; bytes that are not UTF-8 as `\xNN`.
fn shown(path: &OsStr) -> String {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory can be made")
    }

    #[test]
    fn follows_no_link_out_of_the_tree() {
        let outside = tree();
        std::fs::write(outside.path().join("secret"), "s").expect("written");
        let root = tree();
        symlink(outside.path(), root.path().join("out")).expect("linked");
        symlink(root.path(), root.path().join("loop")).expect("linked");
        let snapshot = probe(root.path()).expect("it is a directory");
        assert_eq!(
            snapshot.manifest.keys().collect::<Vec<_>>(),
            ["loop", "out"]
        );
        assert_eq!(snapshot.manifest["out"].kind, FileKind::Link);
    }

    #[test]
    fn is_not_held_up_by_a_pipe() {
        let root = tree();
        nix::unistd::mkfifo(&root.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU)
            .expect("a pipe can be made");
        let snapshot = probe(root.path()).expect("it is a directory");
        assert_eq!(snapshot.manifest["pipe"].kind, FileKind::Other);
    }

    #[test]
    fn shows_names_that_are_not_utf8() {
        let root = tree();
        std::fs::write(root.path().join(OsStr::from_bytes(b"a\xffb")), "x").expect("written");
        let snapshot = probe(root.path()).expect("it is a directory");
        assert!(snapshot.manifest.contains_key("a\\xffb"));
    }

    #[test]
    fn a_hostile_tree_is_seen_whole_and_holds_nothing_up() {
        const ENTRIES: usize = 100_000;
        let root = tree();
        let many = root.path().join("many");
        std::fs::create_dir(&many).expect("made");
        for number in 0..ENTRIES {
            File::create(many.join(number.to_string())).expect("made");
        }
        // Links in a circle, a link to itself, one to a device.
        symlink("b", root.path().join("a")).expect("linked");
        symlink("a", root.path().join("b")).expect("linked");
        symlink("self", root.path().join("self")).expect("linked");
        symlink("/dev/zero", root.path().join("zero")).expect("linked");
        // A file with a size and no content, a directory nobody may enter, a name that is a path's.
        let sparse = File::create(root.path().join("sparse")).expect("made");
        sparse.set_len(1 << 28).expect("it can be sparse");
        let shut = root.path().join("shut");
        std::fs::create_dir(&shut).expect("made");
        std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o0)).expect("shut");
        std::fs::write(root.path().join("..name\n\u{1b}[2J"), "x").expect("written");
        let mut deep = root.path().to_owned();
        for _ in 0..200 {
            deep.push("d");
            std::fs::create_dir(&deep).expect("made");
        }
        let snapshot = probe(root.path()).expect("it is a directory");
        assert!(snapshot.manifest.len() > ENTRIES + 200);
        assert_eq!(snapshot.manifest["sparse"].size, ByteSize(1 << 28));
        assert_eq!(snapshot.manifest["zero"].kind, FileKind::Link);
        assert!(snapshot.databases.is_empty());
        std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o700)).expect("opened");
    }

    #[test]
    fn files_may_vanish_and_grow_while_it_looks() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let root = tree();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0u32;
                while !over.load(Ordering::SeqCst) {
                    round = round.wrapping_add(1);
                    let path = root.path().join((round % 50).to_string());
                    // What goes wrong here is what the probe must stand.
                    let _ = match round % 4 {
                        0 => std::fs::remove_file(&path),
                        1 => std::fs::write(&path, vec![b'x'; (round % 100_000) as usize]),
                        2 => std::fs::write(&path, "SQLite format 3\0 and no more"),
                        _ => std::fs::rename(&path, root.path().join("moved")),
                    };
                }
            });
            for _ in 0..50 {
                probe(root.path()).expect("the root is still there");
            }
            over.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn sees_what_only_the_log_of_a_database_holds() {
        let root = tree();
        let path = root.path().join("dir");
        std::fs::create_dir(&path).expect("made");
        let db = rusqlite::Connection::open(path.join("s.db")).expect("opened");
        db.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(x);
             PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (1),(2);",
        )
        .expect("filled");
        let snapshot = probe(root.path()).expect("it is a directory");
        let facts = &snapshot.databases["dir/s.db"];
        assert_eq!(facts.with_sidecars.integrity, "ok");
        assert_eq!(facts.with_sidecars.rows["t"], 2);
        assert_eq!(facts.alone.integrity, "ok");
        assert_eq!(facts.alone.rows["t"], 0);
        assert!(
            snapshot
                .sidecar("dir/s.db", reprise_model::Sidecar::Wal)
                .is_some()
        );
    }

    #[test]
    fn names_a_root_that_is_not_there() {
        let error = probe(Path::new("/no/such/place")).expect_err("it is not there");
        assert!(error.to_string().contains("/no/such/place"), "{error}");
    }
}
