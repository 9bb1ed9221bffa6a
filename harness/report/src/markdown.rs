//! A run in Markdown, for a job's summary (<https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions#adding-a-job-summary>).

use std::fmt::Write;

use reprise_model::{CellResult, Judgement, NotMeasured};

use crate::text::{plain, seconds};

/// The most cells whose failures are told one by one.
const TOLD: usize = 40;

fn sign(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Pass => "✅",
        Judgement::Fail => "❌",
        Judgement::Inconclusive => "⚠️",
        Judgement::NotApplicable => "➖",
    }
}

/// A text in a table's cell.
fn cell(text: &str) -> String {
    let text = plain(text);
    let first = text.lines().next().unwrap_or_default();
    // Markdown takes HTML; what an agent wrote is shown, not obeyed.
    first
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('|', "\\|")
}

/// Everything a run gave.
#[must_use]
pub fn markdown(results: &[CellResult], not_measured: &[NotMeasured]) -> String {
    let mut text = String::from(
        "| | agent | layer | scenario | engine | with | time |\n|---|---|---|---|---|---|---|\n",
    );
    for result in results {
        let at = &result.cell;
        let module = result
            .module
            .as_ref()
            .map(|module| format!(", {module}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {}{module} | {} |",
            sign(result.judgement),
            at.agent,
            at.layer,
            at.scenario,
            at.engine,
            result.subject,
            seconds(result.millis),
        );
    }
    let failed: Vec<&CellResult> = results
        .iter()
        .filter(|result| result.judgement > Judgement::Pass)
        .collect();
    if !failed.is_empty() {
        text.push_str("\n| cell | check | what was seen |\n|---|---|---|\n");
    }
    for result in failed.iter().take(TOLD) {
        let bad = result
            .verdicts
            .iter()
            .filter(|verdict| verdict.judgement == result.judgement);
        for verdict in bad {
            let _ = writeln!(
                text,
                "| {} | {} {} | {} |",
                result.cell,
                sign(verdict.judgement),
                verdict.check,
                cell(&verdict.summary)
            );
        }
    }
    if failed.len() > TOLD {
        let _ = writeln!(text, "\nand {} cells more", failed.len() - TOLD);
    }
    if !not_measured.is_empty() {
        text.push_str("\n| not measured | why |\n|---|---|\n");
        for missing in not_measured {
            let _ = writeln!(text, "| {} | {} |", missing.cell, cell(&missing.reason));
        }
    }
    text
}
