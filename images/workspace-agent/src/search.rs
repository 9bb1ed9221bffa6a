//! Looks for words in files: where a nonce has got to.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use regex::bytes::Regex;
use walkdir::WalkDir;

/// The longest file that is looked into; conversations are far smaller.
const LIMIT: u64 = 64 << 20;

/// Prints each file below `root` that has words beginning with `reprise-`, and those words, as JSON.
///
/// # Errors
/// If nobody takes the result.
pub(crate) fn main(root: &Path) -> io::Result<()> {
    println!("{}", serde_json::to_string(&search(root))?);
    Ok(())
}

fn search(root: &Path) -> BTreeMap<String, Vec<String>> {
    let words = Regex::new("reprise-[a-z][0-9]+-[0-9]+-[0-9a-f]{12}").expect("a regex");
    let mut found = BTreeMap::new();
    let files = WalkDir::new(root)
        .follow_links(false)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.len() <= LIMIT));
    for entry in files {
        // What vanishes while it is looked for holds nothing.
        let bytes = fs::read(entry.path()).unwrap_or_default();
        let mut here: Vec<String> = words
            .find_iter(&bytes)
            .map(|word| String::from_utf8_lossy(word.as_bytes()).into_owned())
            .collect();
        here.sort();
        here.dedup();
        if !here.is_empty() {
            let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
            found.insert(below.display().to_string(), here);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_words_in_text_and_in_bytes() {
        let root = tempfile::tempdir().expect("a directory can be made");
        fs::write(root.path().join("a"), b"\xff\0reprise-p0-0-0123456789abX").expect("written");
        fs::write(root.path().join("b"), "reprise-p0-0-short").expect("written");
        let found = search(root.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found["a"], ["reprise-p0-0-0123456789ab"]);
    }
}
