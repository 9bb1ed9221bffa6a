//! What the runner tells whoever watches: past facts, in order.

use crate::{Act, Cell, CellResult, NotMeasured, Outcome, RunId};

/// Something that has just happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The run began.
    RunStarted {
        /// The run.
        run: RunId,
        /// Cells that will be measured.
        cells: usize,
        /// Where it is recorded.
        directory: String,
    },
    /// Something that every cell needs is being obtained.
    Preparing {
        /// What.
        what: String,
    },
    /// A cell began.
    CellStarted {
        /// Which.
        cell: Cell,
    },
    /// A step of a cell began.
    StepStarted {
        /// Which cell.
        cell: Cell,
        /// What.
        act: Act,
    },
    /// A step of a cell ended.
    StepEnded {
        /// Which cell.
        cell: Cell,
        /// What.
        act: Act,
        /// How.
        outcome: Outcome,
        /// How long it took, in milliseconds.
        millis: u64,
    },
    /// A cell was measured.
    CellEnded {
        /// With these verdicts.
        result: Box<CellResult>,
    },
    /// A cell could not be measured.
    CellNotMeasured {
        /// Which, and why.
        what: NotMeasured,
    },
    /// The run ended.
    RunEnded {
        /// Whether the user cut it short.
        cancelled: bool,
    },
}
