//! Every kind of bad input: each brings a clear message and loses nothing.

use std::fs;
use std::process::Command;

use nix::unistd::geteuid;
use reprise_tests::user::{Bench, Ran, modules_usable, processes, reference_cell, usable};
use reprise_tests::{program, required, shared};

#[test]
fn names_nobody_has_bring_the_nearest() {
    let bench = Bench::open();
    bench
        .run(&["run", "gooose"])
        .says(64, &["`gooose`", "did you mean `goose`?"]);
    bench
        .run(&["run", "goose", "-s", "warm_start"])
        .says(64, &["`warm_start`", "did you mean"]);
    bench
        .run(&["run", "--require", "gose/native"])
        .says(64, &["did you mean `goose`?"]);
    bench
        .run(&["run", "--require", "goose/nativ"])
        .says(64, &["`nativ` is no layer"]);
    bench
        .run(&["run", "--module", "coder/goose@3.0.1"])
        .says(64, &["needs the one agent"]);
    bench
        .run(&["run", "goose", "--module", "goose"])
        .says(64, &["NAMESPACE/NAME"]);
}

#[test]
fn a_bad_file_is_shown_where_it_is_bad() {
    let bench = Bench::open();
    let catalogue = bench.dir.path().join("catalogue");
    fs::create_dir_all(catalogue.join("agents")).expect("made");
    let text = "name: mine\nsummary: s\nsteps: [start, tsk]\nchecks: [session_continues]\n";
    fs::write(catalogue.join("mine.yaml"), text).expect("written");
    bench.run(&["run", "--catalogue", "catalogue"]).says(
        65,
        &["mine.yaml:3", "unknown variant `tsk`", "expected one of"],
    );
    bench
        .run(&["run", "--catalogue", "nowhere"])
        .says(65, &["nowhere"]);
}

#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let bench = Bench::open();
    if !geteuid().is_root() || !usable(&bench, "sandbox") {
        eprintln!("skipped: a small disk needs root");
        return;
    }
    let small = bench.dir.path().join("runs");
    fs::create_dir(&small).expect("made");
    let script = "mount -t tmpfs -o size=24k tmpfs \"$0\" && shift 0 && exec \"$@\"";
    let reprise = program();
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(&small)
        .arg(&reprise)
        .args(reference_cell("sandbox", "native", "three_restarts", &[]))
        .env("REPRISE_STATE", bench.dir.path().join("state"))
        .current_dir(bench.dir.path())
        .output()
        .expect("unshare runs");
    let ran = Ran::from(output);
    let all = format!("{}{}", ran.out, ran.err);
    assert!(all.contains("No space left on device"), "{all}");
    assert!(matches!(ran.code, Some(2 | 74)), "{:?}: {all}", ran.code);
    assert_eq!(bench.left(), "");
}

/// A registry with one module: its `main.tf`, and the script it runs at start.
fn registry(bench: &Bench, main: &str, script: &str) -> String {
    let module = bench
        .dir
        .path()
        .join("registry/registry/test/modules/subject");
    fs::create_dir_all(&module).expect("made");
    fs::write(module.join("main.tf"), main).expect("written");
    fs::write(module.join("start.sh"), script).expect("written");
    bench.dir.path().join("registry").display().to_string()
}

const MAIN: &str = r#"
terraform {
  required_providers {
    coder = { source = "coder/coder", version = ">= 2.12" }
  }
}
variable "agent_id" { type = string }
variable "task_prompt" { type = string }
resource "coder_script" "start" {
  agent_id     = var.agent_id
  display_name = "Start"
  script       = file("${path.module}/start.sh")
  run_on_start = true
}
"#;

fn run_module(bench: &Bench, registry: &str, more: &[&str]) -> Ran {
    let mut args = vec![
        "run",
        "reference",
        "-e",
        "sandbox",
        "-s",
        "cold_start",
        "--module",
        "test/subject",
        "--registry",
        registry,
    ];
    args.extend(more);
    bench.run(&args)
}

#[test]
fn a_module_that_does_not_render_brings_terraforms_own_words() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let place = registry(
        &bench,
        &MAIN.replace("var.agent_id", "var.agent_ident"),
        "true",
    );
    run_module(&bench, &place, &[]).says(2, &["does not render", "agent_ident", "undeclared"]);
    assert_eq!(bench.left(), "");
}

#[test]
fn a_script_that_fails_is_quoted() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let place = registry(
        &bench,
        MAIN,
        "#!/bin/bash\necho nothing works here >&2\nexit 9\n",
    );
    run_module(&bench, &place, &[]).says(2, &["script `Start`: exit code 9", "nothing works here"]);
}

#[test]
fn a_script_that_hangs_is_ended_at_the_limit() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let place = registry(
        &bench,
        MAIN,
        "#!/bin/bash\necho waiting for ever\nsleep 600\n",
    );
    run_module(&bench, &place, &["--timeout", "8"]).says(2, &["limit", "waiting for ever"]);
    assert_eq!(bench.left(), "");
    assert_eq!(processes(&bench), [""; 0]);
}

#[test]
fn an_agent_that_never_asks_its_model_fails_the_cold_start() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let place = registry(&bench, MAIN, "#!/bin/bash\necho started nothing\n");
    run_module(&bench, &place, &["--timeout", "24"]).says(1, &["the task never reached the model"]);
}

#[test]
fn a_port_that_agentapi_needs_is_refused() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let args = [
        "run",
        "reference",
        "-e",
        "sandbox",
        "-l",
        "module",
        "--gateway-port",
        "3284",
        "--require",
        "all",
    ];
    bench.run(&args).says(3, &["3284", "taken by AgentAPI"]);
}

#[test]
fn a_release_that_does_not_exist_brings_those_that_do() {
    let bench = Bench::open();
    let Some(shared) = shared() else {
        assert!(!required("registry"), "REPRISE_SHARED is not set");
        eprintln!("skipped: REPRISE_SHARED is not set");
        return;
    };
    if !modules_usable(&bench) {
        return;
    }
    let place = shared
        .join("upstream/coder-registry.bundle")
        .display()
        .to_string();
    let args = |module| {
        [
            "run",
            "goose",
            "-e",
            "sandbox",
            "--require",
            "goose",
            "--registry",
            &place,
            "--module",
            module,
        ]
        .map(ToOwned::to_owned)
    };
    for (module, words) in [
        (
            "coder/goose@9.9.9",
            ["coder/goose@9.9.9", "the newest is 3.0.1"],
        ),
        (
            "coder/gouse@1.0.0",
            ["coder/gouse", "no release of that module"],
        ),
    ] {
        let args = args(module);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        bench.run(&args).says(3, &words);
    }
}

#[test]
fn an_uncommitted_change_in_a_checkout_is_measured() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let place = registry(&bench, MAIN, "#!/bin/bash\necho committed; exit 1\n");
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(&place)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    registry(&bench, MAIN, "#!/bin/bash\necho not committed; exit 1\n");
    run_module(&bench, &place, &[]).says(2, &["not committed"]);
}
