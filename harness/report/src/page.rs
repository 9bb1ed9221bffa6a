//! The compatibility page, written from measurements by a template that a user can replace.

use minijinja::{Environment, context};
use reprise_model::{MatrixRow, Standing, Subject};
use serde::Serialize;
use similar::TextDiff;
use thiserror::Error;

use crate::matrix::{level, storage, versions};

/// The template that comes with this program.
pub const PAGE_TEMPLATE: &str = include_str!("../templates/page.md");

/// Why there is no page.
#[derive(Debug, Error)]
#[error("the page's template: {}", told(.0))]
pub struct PageError(#[from] minijinja::Error);

fn told(error: &minijinja::Error) -> String {
    let at = error
        .line()
        .map(|line| format!(" (line {line})"))
        .unwrap_or_default();
    format!("{error}{at}")
}

/// A row as the template sees it.
#[derive(Serialize)]
struct Row {
    title: String,
    namespace: String,
    module: String,
    module_version: String,
    claimed: String,
    support: String,
    because: String,
    paths: Vec<String>,
    storage: String,
    storage_note: String,
    measured_storage: String,
    measured_with: String,
    evidence: String,
    notes: Vec<NoteOnPage>,
    differences: Vec<DifferenceOnPage>,
}

#[derive(Serialize)]
struct NoteOnPage {
    text: String,
    /// `true`, `false`, or nothing where nobody measured it.
    holds: Option<bool>,
    because: String,
}

#[derive(Serialize)]
struct DifferenceOnPage {
    claimed: String,
    measured: String,
    evidence: Vec<String>,
    reproduce: String,
}

/// A text on one line of a table or a list.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.replace('|', "\\|")
}

/// Paths as the page writes them.
fn path(glob: &str) -> String {
    match glob.strip_suffix("**") {
        Some(directory) => format!("~/{directory}"),
        None => format!("~/{glob}"),
    }
}

fn evidence(row: &MatrixRow) -> String {
    match &row.through_module {
        Standing::Resumes(Subject::RealAgent) | Standing::Fails(Subject::RealAgent) => {
            "real agent".to_owned()
        }
        Standing::Resumes(Subject::StandIn) | Standing::Fails(Subject::StandIn) => {
            "real module, stand-in agent".to_owned()
        }
        Standing::Unmeasured(_) => "none".to_owned(),
    }
}

impl From<&MatrixRow> for Row {
    fn from(row: &MatrixRow) -> Self {
        let module = row.module.as_ref();
        Self {
            title: row.title.clone(),
            namespace: module.map_or_else(String::new, |module| module.namespace.clone()),
            module: module.map_or_else(String::new, |module| module.name.clone()),
            module_version: module
                .and_then(|module| module.version.as_ref())
                .map_or_else(String::new, ToString::to_string),
            claimed: row
                .claim
                .support
                .map_or_else(String::new, |level| level.to_string()),
            support: level(row),
            because: line(&row.because),
            paths: row.claim.paths.iter().map(|glob| path(glob)).collect(),
            storage: row
                .claim
                .storage_mb
                .map_or_else(String::new, |mb| format!("{mb} MB")),
            storage_note: row.claim.storage_note.clone().unwrap_or_default(),
            measured_storage: storage(row),
            measured_with: line(&versions(row)),
            evidence: evidence(row),
            notes: row
                .notes
                .iter()
                .map(|note| NoteOnPage {
                    text: note.text.clone(),
                    holds: note.holds,
                    because: line(&note.because),
                })
                .collect(),
            differences: row
                .differences
                .iter()
                .map(|difference| DifferenceOnPage {
                    claimed: line(&difference.claimed),
                    measured: line(&difference.measured),
                    evidence: difference.evidence.iter().map(|seen| line(seen)).collect(),
                    reproduce: difference.reproduce.clone(),
                })
                .collect(),
        }
    }
}

/// The page.
///
/// # Errors
/// If the template is wrong; with its line.
pub fn page(template: &str, rows: &[MatrixRow]) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.add_template("page.md", template)?;
    let rows: Vec<Row> = rows.iter().map(Row::from).collect();
    let page = environment.get_template("page.md")?;
    Ok(page.render(context! { rows })?)
}

/// What is written differs from what was measured: a unified diff, if it does.
#[must_use]
pub fn difference(written: &str, measured: &str, name: &str) -> Option<String> {
    if written == measured {
        return None;
    }
    let diff = TextDiff::from_lines(written, measured);
    let mut unified = diff.unified_diff();
    Some(
        unified
            .context_radius(2)
            .header(name, "as measured")
            .to_string(),
    )
}
