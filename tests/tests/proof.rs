//! That the verdicts can be trusted: faults are noticed and nothing else is, random scenarios hold, two engines tell the same story,
//! and workspaces beside each other do not mix.

use reprise_tests::user::{Bench, modules_usable, usable};
use serde_json::Value;

#[test]
fn every_fault_is_noticed_and_no_healthy_cell_raises_an_alarm() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") || !modules_usable(&bench) {
        return;
    }
    let ran = bench.run(&["verify", "-e", "sandbox", "--jobs", "18", "--json"]);
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

/// What happened in a run, without what differs from run to run.
fn outline(bench: &Bench, engine: &str, scenario: &str, layer: &str) -> Vec<String> {
    let runs = format!("runs-{engine}");
    let args = [
        "run",
        "reference",
        "-e",
        engine,
        "-l",
        layer,
        "-s",
        scenario,
        "--runs",
        &runs,
    ];
    bench.run(&args).says(0, &["1 pass"]);
    let ran = bench.run(&["check", &runs, "--outline"]);
    ran.says(0, &["start the workspace: ok"]);
    // The first line names the cell, and with it the engine.
    ran.out.lines().skip(1).map(ToOwned::to_owned).collect()
}

fn told_alike(scenario: &str, layer: &str) {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") || !usable(&bench, "docker") {
        return;
    }
    if layer == "module" && !modules_usable(&bench) {
        return;
    }
    let sandbox = outline(&bench, "sandbox", scenario, layer);
    let docker = outline(&bench, "docker", scenario, layer);
    assert!(sandbox.len() > 20, "{sandbox:#?}");
    pretty_compare(&sandbox, &docker);
}

/// A difference is a fault of an engine.
fn pretty_compare(sandbox: &[String], docker: &[String]) {
    let different = sandbox
        .iter()
        .zip(docker)
        .position(|(one, other)| one != other)
        .or((sandbox.len() != docker.len()).then(|| sandbox.len().min(docker.len())));
    if let Some(at) = different {
        let near =
            |lines: &[String]| lines[at.saturating_sub(3)..lines.len().min(at + 3)].join("\n");
        panic!("sandbox:\n{}\ndocker:\n{}", near(sandbox), near(docker));
    }
}

#[test]
fn a_warm_restart_is_the_same_story_on_both_engines() {
    told_alike("warm_restart", "native");
}

#[test]
fn a_kill_in_a_tool_call_is_the_same_story_on_both_engines() {
    told_alike("killed_in_tool_call", "native");
}

#[test]
fn three_restarts_of_a_module_are_the_same_story_on_both_engines() {
    told_alike("chat_history", "module");
}

fn side_by_side(layer: &str, engine: &str) {
    let bench = Bench::open();
    if !usable(&bench, engine) || (layer == "module" && !modules_usable(&bench)) {
        return;
    }
    let args = [
        "run",
        "reference",
        "-e",
        engine,
        "-l",
        layer,
        "-s",
        "side_by_side",
        "--repeat",
        "20",
        "--jobs",
        "20",
    ];
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
