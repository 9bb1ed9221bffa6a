//! Which variables a module has: what a note of the page says of one can be held against it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use regex::Regex;

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^\s*variable\s+"([A-Za-z0-9_-]+)""#).expect("the pattern is one")
});

fn in_text(text: &str) -> impl Iterator<Item = String> {
    VARIABLE
        .captures_iter(text)
        .map(|found| found[1].to_owned())
}

fn is_terraform(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "tf")
}

/// The variables of a module in a directory. What cannot be read has none; rendering it tells why.
pub(crate) fn variables_of_tree(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            is_terraform(&path).then(|| fs::read_to_string(&path).ok())?
        })
        .flat_map(|text| in_text(&text).collect::<Vec<_>>())
        .collect()
}

/// The variables of a module in a gzipped tarball.
pub(crate) fn variables_of_archive(archive: &[u8]) -> BTreeSet<String> {
    let mut variables = BTreeSet::new();
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for mut entry in archive
        .entries()
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let path = entry
            .path()
            .map(|path| path.into_owned())
            .unwrap_or_default();
        let at_top = path
            .parent()
            .is_none_or(|parent| parent.as_os_str().is_empty() || parent.as_os_str() == ".");
        let mut text = String::new();
        if at_top && is_terraform(&path) && entry.read_to_string(&mut text).is_ok() {
            variables.extend(in_text(&text));
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_variables_and_nothing_else() {
        let text = "variable \"a\" {\n  type = string\n}\n# variable \"b\"\nlocals { x = var.c }\n  variable \"d-e\" {}\n";
        assert_eq!(in_text(text).collect::<Vec<_>>(), ["a", "d-e"]);
    }
}
