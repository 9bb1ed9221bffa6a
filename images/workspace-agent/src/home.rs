//! A new home: what `/etc/skel` has for new users, as Coder's example templates copy it at a workspace's first start, and
//! the files that a template adds.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

const SKELETON: &str = "/etc/skel";

/// Fills a new home. What is there already stays.
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
