//! Secrets are masked before anything is written.

use std::borrow::Cow;

use regex::{NoExpand, Regex};

/// What stands in a secret's place.
const MASK: &str = "[masked]";

/// Values shorter than this are no secrets, and would mask half of a body.
const SHORTEST: usize = 8;

/// Forms of credentials that are known by their look: vendors' API keys, tokens of code hosts and clouds, JSON web
/// tokens, bearer headers quoted in text.
const FORMS: &str = concat!(
    r"sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}",
    r"|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}",
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|[Bb]earer [A-Za-z0-9._~+/-]{16,}=*",
);

/// Masks credentials: those known by their value, and those known by their form.
#[derive(Debug, Clone)]
pub struct Masker {
    secrets: Regex,
}

impl Masker {
    /// A masker that knows these values beside all forms.
    #[must_use]
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .filter(|value| value.len() >= SHORTEST)
            .map(regex::escape)
            .collect();
        // The longest first: one value may begin another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.push(FORMS.to_owned());
        let secrets = Regex::new(&values.join("|")).expect("escaped values and a fixed pattern");
        Self { secrets }
    }

    /// The text without its secrets.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.replace_all(text, NoExpand(MASK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_values_and_forms() {
        let masker = Masker::new(["hunter2hunter2", "short"]);
        let key = format!("sk-{}", "a1".repeat(12));
        let text = format!(
            "pass hunter2hunter2, short, {key}, Bearer {}",
            "x".repeat(20)
        );
        assert_eq!(
            masker.mask(&text),
            "pass [masked], short, [masked], [masked]"
        );
    }

    #[test]
    fn leaves_other_text_as_it_is() {
        let masker = Masker::new([]);
        assert!(matches!(
            masker.mask("reprise-p-0123456789ab"),
            Cow::Borrowed(_)
        ));
    }
}
