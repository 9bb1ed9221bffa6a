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

#[test]
fn what_an_agent_wrote_is_shown_and_never_obeyed() {
    const HOSTILE: &str = "<script>alert(1)</script>|\u{1b}]0;title\u{7}\u{9b}2J\u{0}";
    let evidence = Evidence {
        source: Source::History,
        at: None,
        saw: HOSTILE.to_owned(),
        expected: Some(HOSTILE.to_owned()),
    };
    let verdicts = vec![verdict(
        "prompt_not_resent",
        Judgement::Fail,
        HOSTILE,
        vec![evidence],
    )];
    let mut failed = result(cell(Layer::Module, "warm_restart"), verdicts);
    failed.trouble = Some(HOSTILE.to_owned());
    failed.logs = vec![LogTail {
        name: HOSTILE.to_owned(),
        lines: vec![HOSTILE.to_owned()],
    }];
    let missing = [NotMeasured {
        cell: cell(Layer::Native, "warm_restart"),
        reason: HOSTILE.to_owned(),
    }];
    let results = [failed];
    let own = "\u{1b}[";
    let summary = reprise_report::summary(&results, &missing, Some(140)).replace(own, "");
    let markdown = reprise_report::markdown(&results, &missing);
    let junit = reprise_report::junit(&results, &missing).expect("it is written");
    for (name, text) in [
        ("summary", &summary),
        ("markdown", &markdown),
        ("junit", &junit),
    ] {
        let sent = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(sent, None, "{name}");
    }
    for (name, text) in [("markdown", &markdown), ("junit", &junit)] {
        assert!(!text.contains("<script>"), "{name}: {text}");
    }
}
