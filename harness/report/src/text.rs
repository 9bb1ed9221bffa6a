//! Text from a workspace may hold control characters; none of them reaches a terminal.

/// The text with control characters shown and not sent. Line ends and tabs stay.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c.to_string(),
            '\u{1b}' => "␛".to_owned(),
            c if c.is_control() => format!("\\u{{{:x}}}", u32::from(c)),
            c => c.to_string(),
        })
        .collect()
}

/// A duration as a person reads it.
pub(crate) fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_characters() {
        assert_eq!(plain("a\u{1b}[31mb\u{7}\n"), "a␛[31mb\\u{7}\n");
    }
}
