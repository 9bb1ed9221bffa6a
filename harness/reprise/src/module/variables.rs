//! Which variables a module has: what a note of the page says of one can be held against it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^\s*variable\s+"([A-Za-z0-9_-]+)""#).expect("the pattern is one")
});

fn in_text(text: &str) -> impl Iterator<Item = String> {
    VARIABLE
        .captures_iter(text)
        .map(|found| found[1].to_owned())
}

/// The variables of a module with these texts: those of the Terraform files at its top.
pub(crate) fn variables(texts: &BTreeMap<String, String>) -> BTreeSet<String> {
    texts
        .iter()
        .filter(|(path, _)| path.ends_with(".tf") && !path.contains('/'))
        .flat_map(|(_, text)| in_text(text))
        .collect()
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
