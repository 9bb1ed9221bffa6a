//! Draws what happened: live events and stored verdicts, for people and for programs. Knows no engine and no disk.

mod audit;
mod detection;
mod json;
mod junit;
mod live;
mod markdown;
mod matrix;
mod page;
mod summary;
mod table;
mod text;

pub use audit::{audit, volumes};
pub use detection::verification;
pub use json::json;
pub use junit::{JunitError, junit};
pub use live::{Live, Style};
pub use markdown::markdown;
pub use matrix::{level, matrix};
pub use page::{PAGE_TEMPLATE, PageError, difference, page};
pub use summary::summary;
pub use text::plain;
