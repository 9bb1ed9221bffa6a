//! Placeholders in profiles: `${gateway}`, `${message}`.

use std::collections::BTreeMap;

use thiserror::Error;

/// A placeholder nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`${{{name}}}` in `{text}` is no placeholder (known: {known})")]
pub struct ExpandError {
    name: String,
    text: String,
    known: String,
}

/// Placeholders and what they stand for.
#[derive(Debug, Clone, Default)]
pub struct Placeholders(BTreeMap<&'static str, String>);

impl Placeholders {
    /// The same, and `name` stands for `value`.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.insert(name, value.into());
        self
    }

    /// The text with each placeholder replaced.
    ///
    /// # Errors
    /// If it holds one that is not known.
    pub fn expand(&self, text: &str) -> Result<String, ExpandError> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let value = self.0.get(name).ok_or_else(|| ExpandError {
                name: name.to_owned(),
                text: text.to_owned(),
                known: self.0.keys().copied().collect::<Vec<_>>().join(", "),
            })?;
            expanded.push_str(value);
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Each text with its placeholders replaced.
    ///
    /// # Errors
    /// If one holds a placeholder that is not known.
    pub fn expand_all(&self, texts: &[String]) -> Result<Vec<String>, ExpandError> {
        texts.iter().map(|text| self.expand(text)).collect()
    }

    /// Each value with its placeholders replaced.
    ///
    /// # Errors
    /// If one holds a placeholder that is not known.
    pub fn expand_values(
        &self,
        values: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, ExpandError> {
        values
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.expand(value)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_what_it_knows_and_names_what_it_does_not() {
        let placeholders = Placeholders::default().with("gateway", "127.0.0.1:1");
        assert_eq!(
            placeholders.expand("http://${gateway}/v1 $x {y}"),
            Ok("http://127.0.0.1:1/v1 $x {y}".to_owned())
        );
        let error = placeholders.expand("${gate}").expect_err("nobody knows it");
        assert!(error.to_string().contains("gateway"), "{error}");
        assert!(placeholders.expand("${").is_err());
    }
}
