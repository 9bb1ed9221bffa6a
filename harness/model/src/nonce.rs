//! The nonces that make the wire an oracle.
//!
//! The prompt nonce stands in the task. An answer nonce stands in the assistant's reply and nowhere else, so
//! an agent can only repeat it later if its session survived. A tool nonce stands in a tool call and its
//! result. Answers differ from one start of the workspace to the next: a fresh session that is sent the task
//! again gets another answer, and can't pass for the old one.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

const PREFIX: &str = "reprise-";
const HEX: usize = 12;

/// What a nonce found in a message stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mark")]
pub enum Mark {
    /// The task's prompt.
    Prompt,
    /// The reply given in start `epoch` (0 is the first) to the task (`turn` 0) or to follow-up `turn`.
    Answer {
        /// Which start of the workspace.
        epoch: u32,
        /// 0 for the task, n for the n-th follow-up.
        turn: u32,
    },
    /// The tool call asked for in start `epoch`, and its result.
    Tool {
        /// Which start of the workspace.
        epoch: u32,
    },
    /// The n-th follow-up, counted from 1.
    FollowUp {
        /// Which follow-up.
        turn: u32,
    },
    /// What the user says in another session, beside the task's.
    Aside,
    /// A nonce of another workspace: crosstalk.
    Foreign,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt => f.write_str("the task's prompt"),
            Self::Answer { epoch: 0, turn: 0 } => f.write_str("the reply to the task"),
            Self::Answer { epoch, turn: 0 } => {
                write!(
                    f,
                    "the reply to the task as sent again after restart {epoch}"
                )
            }
            Self::Answer { turn, .. } => write!(f, "the reply to follow-up {turn}"),
            Self::Tool { epoch: 0 } => f.write_str("the task's tool call"),
            Self::Tool { epoch } => write!(f, "a tool call made after restart {epoch}"),
            Self::FollowUp { turn } => write!(f, "follow-up {turn}"),
            Self::Aside => f.write_str("another session's first message"),
            Self::Foreign => f.write_str("a nonce of another workspace"),
        }
    }
}

/// Derives one workspace's nonces from a secret seed, and finds them in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonceBook {
    seed: Uuid,
}

impl NonceBook {
    /// Draws a new book.
    #[must_use]
    pub fn draw() -> Self {
        Self {
            seed: Uuid::new_v4(),
        }
    }

    /// A book with a fixed seed, for tests and replays.
    #[must_use]
    pub fn from_seed(seed: Uuid) -> Self {
        Self { seed }
    }

    /// The word says openly what it stands for, so that it is found at once; its digits prove it.
    fn word(&self, letter: char, epoch: u32, turn: u32) -> String {
        let name = format!("{letter}{epoch}-{turn}");
        let digest = Uuid::new_v5(&self.seed, name.as_bytes())
            .simple()
            .to_string();
        format!("{PREFIX}{name}-{}", &digest[..HEX])
    }

    /// The word that stands for `mark`.
    ///
    /// # Panics
    /// For [`Mark::Foreign`], which is no nonce of this book.
    #[must_use]
    pub fn nonce(&self, mark: Mark) -> String {
        match mark {
            Mark::Prompt => self.word('p', 0, 0),
            Mark::Answer { epoch, turn } => self.word('a', epoch, turn),
            Mark::Tool { epoch } => self.word('t', epoch, 0),
            Mark::FollowUp { turn } => self.word('f', 0, turn),
            Mark::Aside => self.word('o', 0, 0),
            Mark::Foreign => unreachable!("a foreign nonce is only ever found, never drawn"),
        }
    }

    /// Every mark that `text` holds, in order of place, each once.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Mark> {
        let mut found = Vec::new();
        for (at, _) in text.match_indices(PREFIX) {
            let Some((mark, digits)) = read(&text[at + PREFIX.len()..]) else {
                continue;
            };
            let ours = self.nonce(mark).ends_with(digits);
            let mark = if ours { mark } else { Mark::Foreign };
            if !found.contains(&mark) {
                found.push(mark);
            }
        }
        found
    }
}

/// What a word after its prefix says it stands for, and the digits that must prove it.
fn read(word: &str) -> Option<(Mark, &str)> {
    let letter = word.chars().next()?;
    let (epoch, rest) = word.get(1..)?.split_once('-')?;
    let (turn, rest) = rest.split_once('-')?;
    let digits = rest.get(..HEX)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (epoch, turn) = (epoch.parse().ok()?, turn.parse().ok()?);
    let mark = match (letter, epoch, turn) {
        ('p', 0, 0) => Mark::Prompt,
        ('o', 0, 0) => Mark::Aside,
        ('a', epoch, turn) => Mark::Answer { epoch, turn },
        ('t', epoch, 0) => Mark::Tool { epoch },
        ('f', 0, turn) => Mark::FollowUp { turn },
        _ => return None,
    };
    Some((mark, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> NonceBook {
        NonceBook::from_seed(Uuid::from_u128(7))
    }

    #[test]
    fn finds_its_own_nonces_in_order() {
        let book = book();
        let text = format!(
            "do {} then\n\"{}\" {}",
            book.nonce(Mark::Prompt),
            book.nonce(Mark::Answer { epoch: 1, turn: 0 }),
            book.nonce(Mark::Prompt),
        );
        assert_eq!(
            book.find(&text),
            [Mark::Prompt, Mark::Answer { epoch: 1, turn: 0 }]
        );
    }

    #[test]
    fn another_books_nonce_is_foreign() {
        let other = NonceBook::from_seed(Uuid::from_u128(8));
        assert_eq!(book().find(&other.nonce(Mark::Prompt)), [Mark::Foreign]);
    }

    #[test]
    fn a_word_is_only_what_its_digits_prove() {
        let book = book();
        let forged = book
            .nonce(Mark::Answer { epoch: 1, turn: 0 })
            .replace("a1-0", "a0-0");
        assert_eq!(book.find(&forged), [Mark::Foreign]);
        assert_eq!(book.find("reprise-a1-0-xyz reprise-- reprise-é"), []);
    }

    #[test]
    fn a_fresh_answer_differs_from_the_first() {
        let book = book();
        assert_ne!(
            book.nonce(Mark::Answer { epoch: 0, turn: 0 }),
            book.nonce(Mark::Answer { epoch: 1, turn: 0 })
        );
    }

    proptest::proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*", cut in 0usize..40) {
            let nonce = book().nonce(Mark::Prompt);
            let part = &nonce[..cut.min(nonce.len())];
            let _ = book().find(&format!("{text}{part}"));
        }
    }
}
