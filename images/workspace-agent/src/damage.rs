//! What befalls a home while its workspace is down: session files that are gone, empty, cut off, overwritten
//! or old.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use globset::{Glob, GlobSet, GlobSetBuilder};
use reprise_model::{Damage, DamageKind};
use walkdir::WalkDir;

/// What a file's content is overwritten with: neither JSON nor a page of a database.
const NOISE: [u8; 512] = [0xA5; 512];

/// How long ago an old file was last written: forty days, which is more than the thirty that agents are known to keep sessions
/// (<https://docs.anthropic.com/en/docs/claude-code/settings>, `cleanupPeriodDays`).
const OLD: Duration = Duration::from_secs(40 * 24 * 60 * 60);

/// Damages the files that are asked for; their paths below `home`, in order.
///
/// # Errors
/// If a glob is none, or a file cannot be changed.
pub(crate) fn inflict(home: &Path, damage: &Damage) -> io::Result<Vec<String>> {
    let globs = globs(&damage.files).map_err(io::Error::other)?;
    let mut hit = Vec::new();
    for entry in WalkDir::new(home).follow_links(false).sort_by_file_name() {
        let entry = entry.map_err(io::Error::other)?;
        let below = entry.path().strip_prefix(home).unwrap_or(entry.path());
        if !entry.file_type().is_file() || !globs.is_match(below) {
            continue;
        }
        apply(entry.path(), damage.kind)?;
        hit.push(below.display().to_string());
    }
    Ok(hit)
}

fn globs(texts: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        set.add(Glob::new(text)?);
    }
    set.build()
}

fn apply(path: &Path, kind: DamageKind) -> io::Result<()> {
    match kind {
        DamageKind::Gone => fs::remove_file(path),
        DamageKind::Empty => File::options().write(true).open(path)?.set_len(0),
        DamageKind::Truncated => {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(file.metadata()?.len() / 2)
        }
        DamageKind::Old => {
            let then = SystemTime::now() - OLD;
            let times = FileTimes::new().set_accessed(then).set_modified(then);
            File::options().write(true).open(path)?.set_times(times)
        }
        DamageKind::Corrupt => {
            let mut file = OpenOptions::new().write(true).open(path)?;
            let mut left = file.metadata()?.len();
            file.seek(SeekFrom::Start(0))?;
            while left > 0 {
                let part = left.min(NOISE.len() as u64);
                let length = usize::try_from(part).expect("at most 512");
                file.write_all(&NOISE[..length])?;
                left -= part;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_files_are_hit() {
        for (kind, expected) in [
            (DamageKind::Gone, None),
            (DamageKind::Empty, Some(0)),
            (DamageKind::Truncated, Some(500)),
            (DamageKind::Corrupt, Some(1000)),
            (DamageKind::Old, Some(1000)),
        ] {
            let home = tempfile::tempdir().expect("a directory can be made");
            let dir = home.path().join(".a/sessions/2026");
            fs::create_dir_all(&dir).expect("made");
            fs::write(dir.join("x.jsonl"), "y".repeat(1000)).expect("written");
            fs::write(home.path().join(".a/config"), "kept").expect("written");
            let damage = Damage {
                kind,
                files: vec![".a/sessions/**".to_owned()],
            };
            let hit = inflict(home.path(), &damage).expect("it can be done");
            assert_eq!(hit, [".a/sessions/2026/x.jsonl"]);
            let now = fs::read(dir.join("x.jsonl")).ok();
            assert_eq!(now.as_ref().map(Vec::len), expected, "{kind:?}");
            let kept = matches!(kind, DamageKind::Truncated | DamageKind::Old);
            assert!(now.is_none_or(|now| !now.contains(&b'y') || kept));
            if kind == DamageKind::Old {
                let written = fs::metadata(dir.join("x.jsonl")).and_then(|it| it.modified());
                let age = written.expect("it is there").elapsed();
                assert!(age.expect("it is past") >= OLD);
            }
            let config = fs::read_to_string(home.path().join(".a/config"));
            assert_eq!(config.expect("it is there"), "kept");
        }
    }
}
