//! Results for programs.

use reprise_model::{CellResult, NotMeasured, Results};

/// The version of `results.json`.
const FORMAT: &str = "1.1";

/// All results as one JSON document.
#[must_use]
pub fn json(results: &[CellResult], not_measured: &[NotMeasured], cancelled: bool) -> String {
    let document = Results {
        format: FORMAT.to_owned(),
        results: results.to_vec(),
        not_measured: not_measured.to_vec(),
        cancelled,
    };
    serde_json::to_string_pretty(&document).expect("results are JSON")
}
