//! That the verdicts can be trusted: faults are noticed and nothing else is, random scenarios hold, two engines tell the same story,
//! and workspaces beside each other do not mix.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reprise_tests::user::{Bench, modules_usable, reference, reference_cell, usable};
use serde_json::Value;

#[test]
fn every_fault_is_noticed_and_no_healthy_cell_raises_an_alarm() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") || !modules_usable(&bench) {
        return;
    }
    let ran = bench.run(&[
        "verify", "-e", "sandbox", "--jobs", "18", "--format", "json",
    ]);
    let found: Value = serde_json::from_str(&ran.out).expect("it is JSON");
    let wrong: Vec<&Value> = found["faults"]
        .as_array()
        .into_iter()
        .flatten()
        .chain(found["alarms"].as_array().into_iter().flatten())
        .filter(|one| one["caught_by"] != one["fired"] || !one["trouble"].is_null())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(found["healthy"], 100);
    let faults = found["faults"].as_array().map_or(0, Vec::len);
    assert!(faults >= 40, "{faults}");
    assert_eq!(bench.left(), "");
}

/// The words that stand between `before` and `after` in the files below a directory.
fn words(dir: &str, before: &str, after: &[char]) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(dir);
    walkdir::WalkDir::new(root)
        .into_iter()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .flat_map(|text| {
            text.split(before)
                .skip(1)
                .filter_map(|rest| Some(rest[..rest.find(after)?].to_owned()))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn whatever_can_be_made_to_go_wrong_is_seeded() {
    let listed: BTreeSet<String> = ["- name: ", "\n  switch: "]
        .iter()
        .flat_map(|before| words("scenarios/faults.yaml", before, &['\n']))
        .collect();
    let of_module = words("tests/registry", "if fault ", &[';', ' '])
        .into_iter()
        .chain(words("tests/registry", "if ! fault ", &[';', ' ']));
    let of_agent = words("images/stand-in/src", "Fault::", &[')', ' ', ',', '\n'])
        .into_iter()
        .map(|name| {
            name.chars().fold(String::new(), |mut snake, c| {
                if c.is_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.extend(c.to_lowercase());
                snake
            })
        });
    let known: BTreeSet<String> = of_module.chain(of_agent).collect();
    assert!(known.len() > 40, "{known:?}");
    let never: Vec<&String> = known.difference(&listed).collect();
    assert!(
        never.is_empty(),
        "no fault of faults.yaml turns on {never:?}"
    );
}

#[test]
fn random_scenarios_hold() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") {
        return;
    }
    bench
        .run(&["verify", "-e", "sandbox", "--random", "15"])
        .says(0, &["15 random scenarios, 0 of them wrong"]);
}

#[test]
fn a_seed_is_run_again_and_says_what_it_is() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") {
        return;
    }
    bench
        .run(&["repro", "7", "-e", "sandbox"])
        .says(0, &["seed 7:", "as it must be", "steps:\n- start\n- task"]);
}

/// What happened in each cell of a suite, without what differs from run to run.
fn outlines(
    bench: &Bench,
    engine: &str,
    suite: &str,
    layer: &str,
) -> BTreeMap<String, Vec<String>> {
    let runs = format!("runs-{engine}");
    let more = ["--suite", suite, "--runs", &runs, "--jobs", "6"];
    bench.run(&reference(engine, layer, &more));
    let ran = bench.run(&["check", &runs, "--outline"]);
    ran.says(0, &["start the workspace: ok"]);
    let mut cells: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut cell = String::new();
    for line in ran.out.lines() {
        // A cell's name begins with its engine's.
        match line.strip_prefix(&format!("{engine}/")) {
            Some(name) => name.clone_into(&mut cell),
            None => cells.entry(cell.clone()).or_default().push(line.to_owned()),
        }
    }
    cells
}

fn told_alike(suite: &str, layer: &str) {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") || !usable(&bench, "docker") {
        return;
    }
    if layer == "module" && !modules_usable(&bench) {
        return;
    }
    let sandbox = outlines(&bench, "sandbox", suite, layer);
    let docker = outlines(&bench, "docker", suite, layer);
    assert!(!sandbox.is_empty());
    assert_eq!(
        sandbox.keys().collect::<Vec<_>>(),
        docker.keys().collect::<Vec<_>>()
    );
    for (cell, lines) in &sandbox {
        assert!(lines.len() > 8, "{cell}: {lines:#?}");
        compare(cell, lines, &docker[cell]);
    }
}

/// A difference is a fault of an engine.
fn compare(cell: &str, sandbox: &[String], docker: &[String]) {
    let different = sandbox
        .iter()
        .zip(docker)
        .position(|(one, other)| one != other)
        .or((sandbox.len() != docker.len()).then(|| sandbox.len().min(docker.len())));
    if let Some(at) = different {
        let near = |lines: &[String]| {
            let from = at.saturating_sub(3).min(lines.len());
            lines[from..lines.len().min(at + 3)].join("\n")
        };
        panic!(
            "{cell}\nsandbox:\n{}\ndocker:\n{}",
            near(sandbox),
            near(docker)
        );
    }
}

#[test]
fn what_befalls_a_session_is_the_same_story_on_both_engines() {
    told_alike("session", "native");
}

#[test]
fn a_loss_of_power_is_the_same_story_on_both_engines() {
    told_alike("power", "native");
}

#[test]
fn what_modules_write_is_the_same_story_on_both_engines() {
    told_alike("module_data", "module");
}

fn side_by_side(layer: &str, engine: &str) {
    let bench = Bench::open();
    if !usable(&bench, engine) || (layer == "module" && !modules_usable(&bench)) {
        return;
    }
    let args = reference_cell(
        engine,
        layer,
        "side_by_side",
        &["--repeat", "20", "--jobs", "20"],
    );
    bench.run(&args).says(0, &["20 cells measured, 20 pass"]);
    assert_eq!(bench.left(), "");
}

#[test]
fn twenty_agents_at_once_do_not_mix() {
    side_by_side("native", "sandbox");
}

#[test]
fn twenty_modules_at_once_do_not_mix() {
    side_by_side("module", "sandbox");
}

#[test]
fn twenty_containers_at_once_do_not_mix() {
    side_by_side("native", "docker");
}
