//! Draws what happened: live events and stored verdicts, for people and for programs. Knows no engine and no disk.

mod json;
mod junit;
mod live;
mod summary;
mod text;

pub use json::json;
pub use junit::{JunitError, junit};
pub use live::{Live, Style};
pub use summary::summary;
pub use text::plain;
