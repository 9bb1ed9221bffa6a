//! How long things may take. Each is an upper bound of a wait for a condition, never a pause.

use std::time::Duration;

/// The limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A whole cell.
    pub cell: Duration,
    /// All start scripts of one start.
    pub start: Duration,
    /// The answer to a task or a follow-up.
    pub answer: Duration,
    /// The way to rest.
    pub settle: Duration,
    /// How long nothing must happen for an agent to be at rest: AgentAPI's status goes back and forth in the first seconds,
    /// and a task that is sent again comes within them.
    pub quiet: Duration,
}

impl Limits {
    /// The usual limits, with this one for a whole cell; every other is a part of it, so that what took too long is named
    /// before the cell as a whole is ended.
    #[must_use]
    pub fn of_cell(cell: Duration) -> Self {
        let at_most = |seconds, part| Duration::from_secs(seconds).min(cell / part);
        Self {
            cell,
            start: at_most(180, 2),
            answer: at_most(60, 4),
            settle: at_most(90, 4),
            quiet: Duration::from_secs(3),
        }
    }
}
