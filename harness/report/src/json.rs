//! Results for programs.

use reprise_model::{CellResult, NotMeasured};
use serde_json::json;

/// All results as one JSON document.
#[must_use]
pub fn json(results: &[CellResult], not_measured: &[NotMeasured], cancelled: bool) -> String {
    let document = json!({
        "format": "1.0",
        "results": results,
        "not_measured": not_measured,
        "cancelled": cancelled,
    });
    serde_json::to_string_pretty(&document).expect("results are JSON")
}
