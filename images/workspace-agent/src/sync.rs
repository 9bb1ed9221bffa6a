//! `coder exp sync`: scripts of one workspace wait for each other. Units are directories; a unit is complete when
//! its `complete` file is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

/// What can be wrong with a unit.
#[derive(Debug, Error)]
pub enum SyncError {
    /// A name that is no file name.
    #[error("`{0}` is not a unit: letters, digits, `.`, `_` and `-`")]
    Name(String),
    /// A duration that is none.
    #[error("`{0}` is not a duration: a number with s, m or h, such as 90s")]
    Duration(String),
    /// The state cannot be kept.
    #[error("cannot keep the state of units in {}: {source}", path.display())]
    State {
        /// The path in question.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It waited in vain.
    #[error("{unit} waited {} s and {} did not complete", waited.as_secs(), missing.join(", "))]
    TimedOut {
        /// Who waited.
        unit: String,
        /// How long.
        waited: Duration,
        /// For whom.
        missing: Vec<String>,
    },
}

fn unit_dir(dir: &Path, unit: &str) -> Result<PathBuf, SyncError> {
    let fits = unit
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if !fits || unit.is_empty() || unit.starts_with('.') {
        return Err(SyncError::Name(unit.to_owned()));
    }
    Ok(dir.join(unit))
}

fn touch(path: &Path) -> Result<(), SyncError> {
    let keep = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, "")
    };
    keep().map_err(|source| SyncError::State {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn want(dir: &Path, unit: &str, dependencies: &[String]) -> Result<(), SyncError> {
    for dependency in dependencies {
        unit_dir(dir, dependency)?;
        touch(&unit_dir(dir, unit)?.join("wants").join(dependency))?;
    }
    Ok(())
}

pub(crate) fn complete(dir: &Path, unit: &str) -> Result<(), SyncError> {
    touch(&unit_dir(dir, unit)?.join("complete"))
}

fn wants(dir: &Path, unit: &str) -> Result<Vec<String>, SyncError> {
    let path = unit_dir(dir, unit)?.join("wants");
    let mut names = match fs::read_dir(&path) {
        Ok(entries) => entries
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(SyncError::State { path, source }),
    };
    names.sort();
    Ok(names)
}

pub(crate) fn start(dir: &Path, unit: &str, timeout: &str) -> Result<(), SyncError> {
    let limit = duration(timeout)?;
    let began = Instant::now();
    loop {
        let missing: Vec<String> = wants(dir, unit)?
            .into_iter()
            .filter(|name| !dir.join(name).join("complete").exists())
            .collect();
        if missing.is_empty() {
            return touch(&unit_dir(dir, unit)?.join("started"));
        }
        if began.elapsed() >= limit {
            return Err(SyncError::TimedOut {
                unit: unit.to_owned(),
                waited: limit,
                missing,
            });
        }
        thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn status(dir: &Path, unit: &str) -> Result<(), SyncError> {
    let path = unit_dir(dir, unit)?;
    let state = match (
        path.join("complete").exists(),
        path.join("started").exists(),
    ) {
        (true, _) => "complete",
        (false, true) => "started",
        (false, false) => "pending",
    };
    println!("{unit}: {state}; wants: {}", wants(dir, unit)?.join(", "));
    Ok(())
}

/// A whole number of seconds, minutes or hours.
fn duration(text: &str) -> Result<Duration, SyncError> {
    let wrong = || SyncError::Duration(text.to_owned());
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        _ => None,
    };
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_waits_for_what_it_wants() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        want(dir.path(), "start", &["install".to_owned()]).expect("noted");
        let error = start(dir.path(), "start", "0s").expect_err("install is not complete");
        assert!(error.to_string().contains("install"), "{error}");
        complete(dir.path(), "install").expect("noted");
        start(dir.path(), "start", "0s").expect("install is complete");
    }

    #[test]
    fn a_unit_cannot_name_a_path() {
        let dir = Path::new("/nowhere");
        assert!(complete(dir, "../x").is_err());
        assert!(complete(dir, "").is_err());
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(
            duration("5m").expect("five minutes"),
            Duration::from_secs(300)
        );
        assert!(duration("5").is_err());
        assert!(duration("m").is_err());
    }
}
