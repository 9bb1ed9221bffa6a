//! What people and CI read, as snapshots.

use std::collections::BTreeMap;

use reprise_model::{
    Cell, CellResult, EngineKind, Evidence, Judgement, Layer, LogTail, NotMeasured, Source, Stamp,
    Subject, Verdict,
};

fn cell(layer: Layer, scenario: &str) -> Cell {
    Cell {
        engine: EngineKind::Sandbox,
        agent: "goose".parse().expect("a name"),
        layer,
        scenario: scenario.parse().expect("a name"),
    }
}

fn verdict(check: &str, judgement: Judgement, summary: &str, evidence: Vec<Evidence>) -> Verdict {
    Verdict {
        figures: Default::default(),
        check: check.parse().expect("a name"),
        judgement,
        summary: summary.to_owned(),
        evidence,
    }
}

fn result(cell: Cell, verdicts: Vec<Verdict>) -> CellResult {
    CellResult {
        subject: Subject::RealAgent,
        module_variables: Default::default(),
        settings: Default::default(),
        module: (cell.layer == Layer::Module)
            .then(|| "coder/goose@3.0.1".parse().expect("a module")),
        judgement: CellResult::worst(&verdicts),
        verdicts,
        versions: BTreeMap::from([("goose".to_owned(), "1.52.0".to_owned())]),
        millis: 12_345,
        directory: "runs/x".to_owned(),
        logs: Vec::new(),
        trouble: None,
        cell,
    }
}

fn results() -> (Vec<CellResult>, Vec<NotMeasured>) {
    let evidence = Evidence {
        source: Source::Wire { request: 7 },
        at: Some(Stamp::literal(7_900_000)),
        saw: "the task again, with a \u{1b}[31mcolour <b>".to_owned(),
        expected: Some("the prompt only as history".to_owned()),
    };
    let mut failed = result(
        cell(Layer::Module, "warm_restart"),
        vec![
            verdict("session_continues", Judgement::Pass, "all of it", vec![]),
            verdict(
                "prompt_not_resent",
                Judgement::Fail,
                "it was sent again",
                vec![evidence],
            ),
            verdict(
                "tool_calls_preserved",
                Judgement::NotApplicable,
                "nothing to hold",
                vec![],
            ),
        ],
    );
    failed.logs = vec![LogTail {
        name: "1-start.log".to_owned(),
        lines: vec!["Starting with a prompt".to_owned()],
    }];
    let mut cut = result(
        cell(Layer::Native, "crash_restart"),
        vec![verdict(
            "session_continues",
            Judgement::Inconclusive,
            "the record ends",
            vec![],
        )],
    );
    cut.trouble = Some("the record was cut off".to_owned());
    let passed = result(
        cell(Layer::Native, "cold_start"),
        vec![verdict(
            "task_received_once",
            Judgement::Pass,
            "once",
            vec![],
        )],
    );
    let missing = ["cold_start", "warm_restart"].map(|scenario| NotMeasured {
        cell: Cell {
            agent: "amp".parse().expect("a name"),
            ..cell(Layer::Native, scenario)
        },
        reason: "no credentials".to_owned(),
    });
    (vec![passed, failed, cut], missing.into())
}

fn uncoloured(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn summary() {
    let (results, missing) = results();
    let text = reprise_report::summary(&results, &missing, Some(120));
    insta::assert_snapshot!(uncoloured(&text));
}

#[test]
fn junit() {
    let (results, missing) = results();
    insta::assert_snapshot!(reprise_report::junit(&results, &missing).expect("it can be written"));
}

#[test]
fn json() {
    let (results, missing) = results();
    insta::assert_snapshot!(reprise_report::json(&results, &missing, false));
}
