//! The compatibility page as it was measured: results of real runs that are checked in, and the page they give.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reprise_tests::program;
use serde_json::Value;

const RESULTS: &str = "page/results.json";
const PAGE: &str = "page/agent-compatibility.md";

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn reprise(args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .arg(here(RESULTS))
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_page_says_what_was_measured() {
    let page = here(PAGE);
    let page = page.to_str().expect("this project's path is UTF-8");
    let output = reprise(&["docs", "--check", page]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "if the change is meant, write it anew with `reprise docs tests/{RESULTS} --write tests/{PAGE}`:\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn a_page_that_says_otherwise_ends_with_a_diff() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let page = fs::read_to_string(here(PAGE)).expect("the page is checked in");
    let claimed = page.replacen("| Planned |", "| Full |", 1);
    assert_ne!(page, claimed, "some agent's module does not resume");
    let path = dir.path().join("page.md");
    fs::write(&path, claimed).expect("it can be written");
    let output = reprise(&["docs", "--check", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1));
    let diff = text(&output.stdout);
    assert!(diff.contains("\n-|") && diff.contains("\n+|"), "{diff}");
}

#[test]
fn a_users_own_template_is_followed_and_its_mistakes_are_placed() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let path = dir.path().join("template.md");
    fs::write(
        &path,
        "{% for row in rows %}{{ row.title }}: {{ row.support }}\n{% endfor %}",
    )
    .expect("it can be written");
    let template = path.to_str().expect("UTF-8");
    let page = text(&reprise(&["docs", "--template", template]).stdout);
    assert_eq!(page.lines().count(), 11, "{page}");
    assert!(page.contains("Claude Code: Full\n"), "{page}");
    fs::write(&path, "one\n{% for row in %}").expect("it can be written");
    let output = reprise(&["docs", "--template", template]);
    assert_eq!(output.status.code(), Some(65));
    assert!(
        text(&output.stderr).contains("line 2"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn every_difference_has_its_evidence_and_a_command_that_shows_it_again() {
    let output = reprise(&["matrix", "--format", "json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("rows are JSON");
    let rows = rows.as_array().expect("rows are a list");
    assert_eq!(rows.len(), 11);
    let mut differences = 0;
    for row in rows {
        for difference in row["differences"].as_array().expect("a list") {
            differences += 1;
            let command = difference["reproduce"].as_str().expect("a command");
            assert!(command.starts_with("reprise run "), "{difference:#}");
            let is_note = difference["claimed"].as_str().is_some_and(|claimed| {
                row["notes"]
                    .as_array()
                    .is_some_and(|notes| notes.iter().any(|note| note["text"] == *claimed))
            });
            let evidence = difference["evidence"].as_array().map_or(0, Vec::len);
            assert!(is_note || evidence > 0, "{difference:#}");
        }
    }
    assert!(differences > 0);
}
