//! One YAML file: limits, typed reading, and errors with the offending text.

use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
use serde::de::DeserializeOwned;
use serde_yaml::Value;
use thiserror::Error;

/// How large and how deep a file may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes.
    pub bytes: usize,
    /// Levels of lists and mappings.
    pub depth: usize,
    /// Steps of a scenario.
    pub steps: usize,
}

/// The limits of every file.
pub const LIMITS: Limits = Limits {
    bytes: 64 * 1024,
    depth: 12,
    steps: 400,
};

/// What is wrong with a file, and where.
#[derive(Debug, Error, Diagnostic, Clone)]
#[error("{message}")]
pub struct FileError {
    message: String,
    #[source_code]
    text: NamedSource<Arc<str>>,
    #[label("{label}")]
    at: Option<SourceSpan>,
    label: String,
    #[help]
    help: Option<String>,
}

/// A file's name and text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl Document<'_> {
    /// Reads the file into `T`.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T, FileError> {
        if self.text.len() > LIMITS.bytes {
            let message = format!(
                "the file has {} bytes, more than the {} it may have",
                self.text.len(),
                LIMITS.bytes
            );
            return Err(self.error(message, None, ""));
        }
        let value: Value = serde_yaml::from_str(self.text).map_err(|error| self.located(&error))?;
        if depth(&value) > LIMITS.depth {
            let message = format!("the file is nested deeper than {} levels", LIMITS.depth);
            return Err(self.error(message, None, ""));
        }
        // Read from the text again: a value no longer knows where it stood.
        serde_yaml::with::singleton_map_recursive::deserialize(serde_yaml::Deserializer::from_str(
            self.text,
        ))
        .map_err(|error| self.located(&error))
    }

    fn located(self, error: &serde_yaml::Error) -> FileError {
        let message = error.to_string();
        // The place stands in the label; in the message it would stand twice.
        let message = message
            .split(" at line ")
            .next()
            .unwrap_or(&message)
            .to_owned();
        let place = error.location().map(|location| {
            let from = location.index().min(self.text.len());
            let rest = self.text.get(from..).unwrap_or_default();
            let length = rest
                .find(['\n', ',', '}', ']'])
                .unwrap_or(rest.len())
                .max(1);
            (from, length)
        });
        self.error(message, place, "here")
    }

    /// An error about `text`, which stands somewhere in the file.
    pub(super) fn about(self, text: &str, message: impl Into<String>) -> FileError {
        let place = self.text.find(text).map(|from| (from, text.len()));
        self.error(message, place, "this")
    }

    fn error(
        self,
        message: impl Into<String>,
        place: Option<(usize, usize)>,
        label: &str,
    ) -> FileError {
        FileError {
            message: message.into(),
            text: NamedSource::new(self.name, Arc::from(self.text)).with_language("yaml"),
            at: place.map(Into::into),
            label: label.to_owned(),
            help: None,
        }
    }
}

impl FileError {
    /// The same error with advice.
    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Sequence(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Mapping(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        Value::Tagged(tagged) => depth(&tagged.value),
        _ => 0,
    }
}

/// Reads a file that is a list.
///
/// # Errors
/// With the place in the file.
pub fn read_list<T: DeserializeOwned>(name: &str, text: &str) -> Result<Vec<T>, FileError> {
    Document { name, text }.read()
}

/// The name of `names` that is nearest to `given`, if any is near.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= (name.len() / 2).clamp(2, 4))
        .min()
        .map(|(_, name)| name)
}
