//! What the user says. Each message holds a nonce of its own, and says nothing of any answer.

use reprise_model::{Mark, NonceBook};

/// The task's text: it holds the prompt's nonce, asks for one tool call, and says nothing of any answer.
pub(super) fn task_text(book: &NonceBook) -> String {
    format!(
        "Run one shell command of your choice in this directory and report when it is done. The reference of this task is {}.",
        book.nonce(Mark::Prompt)
    )
}

pub(super) fn follow_up_text(book: &NonceBook, turn: u32) -> String {
    format!(
        "Please go on. The reference of this message is {}.",
        book.nonce(Mark::FollowUp { turn })
    )
}

/// What the user says in another session than the task's.
pub(super) fn aside_text(book: &NonceBook) -> String {
    format!(
        "Say good day. The reference of this message is {}.",
        book.nonce(Mark::Aside)
    )
}
