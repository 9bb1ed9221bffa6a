//! A new home: what `/etc/skel` has for new users, as Coder's example templates copy it at a workspace's first start, and
//! the files that a template adds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use reprise_model::Place;

const SKELETON: &str = "/etc/skel";

/// Fills a new home. What is there already stays. All of it is on the disk then: a template's files are older than any loss of
/// power, and what is lost must be the agent's.
pub(crate) fn furnish(home: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    copy(Path::new(SKELETON), home)?;
    for (name, content) in files {
        let file = home.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        if !file.try_exists()? {
            fs::write(&file, content)?;
        }
    }
    Ok(rustix::fs::syncfs(File::open(home)?)?)
}

/// Makes directories and links that are not there.
pub(crate) fn make_places(places: &[Place]) -> io::Result<()> {
    for place in places {
        let path = Path::new(&place.path);
        match &place.link_to {
            None => fs::create_dir_all(path)?,
            Some(_) if path.is_symlink() => {}
            Some(target) => {
                fs::create_dir_all(target)?;
                std::os::unix::fs::symlink(target, path)?;
            }
        }
    }
    Ok(())
}

/// Removes everything below `home` but these paths and what lies below them.
pub(crate) fn keep_only(home: &Path, keep: &[String]) -> io::Result<()> {
    let keep: Vec<&Path> = keep
        .iter()
        .map(|path| Path::new(path.trim_end_matches("**").trim_end_matches('/')))
        .collect();
    prune(home, Path::new(""), &keep)
}

fn prune(home: &Path, below: &Path, keep: &[&Path]) -> io::Result<()> {
    for entry in fs::read_dir(home.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if keep.iter().any(|kept| path.starts_with(kept)) {
            continue;
        }
        let is_dir = entry.file_type()?.is_dir();
        if is_dir && keep.iter().any(|kept| kept.starts_with(&path)) {
            prune(home, &path, keep)?;
        } else if is_dir {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else if !target.try_exists()? {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_stays() {
        let home = tempfile::tempdir().expect("a directory can be made");
        for name in [".a/b/c", ".a/d", ".e", ".f"] {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().expect("it has one")).expect("it can be made");
            fs::write(file, "").expect("it can be written");
        }
        keep_only(home.path(), &[".a/b/**".to_owned(), ".e".to_owned()]).expect("it can be pruned");
        let there = |name: &str| home.path().join(name).exists();
        assert!(there(".a/b/c") && there(".e"));
        assert!(!there(".a/d") && !there(".f"));
    }

    #[test]
    fn what_is_there_already_stays() {
        let home = tempfile::tempdir().expect("a directory can be made");
        let files = |text: &str| BTreeMap::from([(".config/a.json".to_owned(), text.to_owned())]);
        for text in ["first", "second"] {
            furnish(home.path(), &files(text)).expect("it can be written");
        }
        let kept = fs::read_to_string(home.path().join(".config/a.json"));
        assert_eq!(kept.expect("it was written"), "first");
    }
}
