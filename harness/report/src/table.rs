//! The look of every table.

use comfy_table::{ContentArrangement, Table, presets};

/// A table that keeps its colours for whoever strips them; as wide as the terminal where no width is given.
pub(crate) fn new(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .enforce_styling();
    if let Some(width) = width {
        table.set_width(width);
    }
    table
}
