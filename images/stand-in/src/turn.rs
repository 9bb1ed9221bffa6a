//! A turn: the model is asked until it asks for nothing more, and what it asks for is done.

use crate::conversation::Said;
use crate::shell;

/// Who takes turns.
pub(crate) trait Turns {
    /// What can go wrong.
    type Error;

    /// What the model says next.
    fn next(&mut self) -> Result<Said, Self::Error>;

    /// Keeps what was said.
    fn keep(&mut self, said: Said) -> Result<(), Self::Error>;
}

/// One turn: the answer to `text`.
pub(crate) fn take<T: Turns>(who: &mut T, text: &str) -> Result<String, T::Error> {
    who.keep(Said::user(text))?;
    loop {
        let next = who.next()?;
        who.keep(next.clone())?;
        match next {
            Said::Call { id, command } => {
                let text = shell::run(&command);
                who.keep(Said::Output { id, text })?;
            }
            Said::Model { text } | Said::User { text } | Said::Output { text, .. } => {
                return Ok(text);
            }
        }
    }
}
