//! Results for CI: a suite for each cell, a case for each check.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use reprise_model::{CellResult, Judgement, NotMeasured, Verdict};
use thiserror::Error;

use crate::text::plain;

/// The document could not be written.
#[derive(Debug, Error)]
#[error("cannot write JUnit's XML: {0}")]
pub struct JunitError(#[from] quick_junit::SerializeError);

fn evidence(verdict: &Verdict) -> String {
    verdict
        .evidence
        .iter()
        .map(|piece| {
            let expected = piece
                .expected
                .as_ref()
                .map(|expected| format!("\n  expected: {expected}"))
                .unwrap_or_default();
            plain(&format!("{}: {}{expected}\n", piece.source, piece.saw))
        })
        .collect()
}

fn status(verdict: &Verdict) -> TestCaseStatus {
    let mut status = match verdict.judgement {
        Judgement::Pass => return TestCaseStatus::success(),
        Judgement::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Judgement::Inconclusive => TestCaseStatus::non_success(NonSuccessKind::Error),
        Judgement::NotApplicable => TestCaseStatus::skipped(),
    };
    status.set_message(plain(&verdict.summary));
    let evidence = evidence(verdict);
    if !evidence.is_empty() {
        status.set_description(evidence);
    }
    status
}

/// All results as JUnit's XML. An inconclusive check is an error, and a cell that could not be measured is skipped.
///
/// # Errors
/// If it cannot be written.
pub fn junit(results: &[CellResult], not_measured: &[NotMeasured]) -> Result<String, JunitError> {
    let mut report = Report::new("reprise");
    for result in results {
        let name = result.cell.to_string();
        let mut suite = TestSuite::new(name.clone());
        suite.set_time(Duration::from_millis(result.millis));
        for verdict in &result.verdicts {
            let mut case = TestCase::new(verdict.check.to_string(), status(verdict));
            case.set_classname(name.clone());
            suite.add_test_case(case);
        }
        if result.verdicts.is_empty() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(plain(
                result.trouble.as_deref().unwrap_or("nothing was judged"),
            ));
            suite.add_test_case(TestCase::new("record", status));
        }
        report.add_test_suite(suite);
    }
    for missing in not_measured {
        let name = missing.cell.to_string();
        let mut suite = TestSuite::new(name.clone());
        let mut status = TestCaseStatus::skipped();
        status.set_message(plain(&missing.reason));
        let mut case = TestCase::new("measured", status);
        case.set_classname(name);
        suite.add_test_case(case);
        report.add_test_suite(suite);
    }
    Ok(report.to_string()?)
}
