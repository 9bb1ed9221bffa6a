//! What users meet when things go wrong: kills, interrupts, and every kind of bad input. Each leaves a clear message, a readable
//! record, and nothing behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use reprise_tests::{program, required, shared};
use tempfile::TempDir;

/// A place of its own for each test: nothing of the user's is touched, and what is left behind can be seen.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary directory can be made"),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(args)
            .env("REPRISE_STATE", self.dir.path().join("state"))
            .current_dir(self.dir.path())
            .env_remove("REPRISE_REGISTRY");
        if let Some(shared) = shared() {
            command.env(
                "REPRISE_AGENTAPI_SOURCE",
                shared.join("upstream/coder-agentapi.bundle"),
            );
        }
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().expect("the program runs"))
    }

    /// The record of the only cell that was measured.
    fn record(&self) -> Option<PathBuf> {
        walk(&self.dir.path().join("runs"))
            .into_iter()
            .find(|path| path.ends_with("history.jsonl"))
    }

    /// Starts a run and waits until its record holds `text`.
    fn run_until(&self, args: &[&str], text: &str) -> Child {
        let mut child = self
            .command(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let seen = self
                .record()
                .and_then(|path| fs::read_to_string(path).ok())
                .is_some_and(|record| record.contains(text));
            if seen {
                return child;
            }
            let ended = child.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "it ended before `{text}`: {ended:?}");
            assert!(Instant::now() < deadline, "`{text}` never came");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the engines still hold of this bench's runs.
    fn left(&self) -> String {
        let ran = self.run(&["gc", "--all", "--dry-run"]);
        ran.out
            .lines()
            .filter(|line| line.starts_with("would be removed"))
            .filter(|line| line.contains("sandbox") || self.owns(line))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Docker's objects are shared with other tests; this bench's are those of its own workspaces.
    fn owns(&self, line: &str) -> bool {
        let records: String = walk(&self.dir.path().join("runs"))
            .into_iter()
            .filter(|path| path.ends_with("history.jsonl"))
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        line.split(' ')
            .next_back()
            .map(|name| name.trim_start_matches("reprise-"))
            .is_some_and(|name| records.contains(name))
    }
}

#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    #[track_caller]
    fn says(&self, code: i32, words: &[&str]) {
        let all = format!("{}{}", self.out, self.err);
        assert_eq!(self.code, Some(code), "{all}");
        for word in words {
            assert!(all.contains(word), "`{word}` is missing in:\n{all}");
        }
    }
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Whether the engine can be used; says so if not.
fn usable(bench: &Bench, engine: &str) -> bool {
    let ran = bench.run(&["doctor"]);
    let good = ran
        .out
        .lines()
        .any(|line| line.trim_start().starts_with("ok") && line.contains(&format!(" {engine}:")));
    assert!(good || !required(engine), "{}", ran.out);
    if !good {
        eprintln!("skipped: {engine} cannot be used here");
    }
    good
}

/// Whether modules can be rendered and started; says so if not.
fn modules_usable(bench: &Bench) -> bool {
    let ran = bench.run(&["doctor"]);
    let good = ran
        .out
        .lines()
        .any(|line| line.trim_start().starts_with("ok") && line.contains(" reference/module:"));
    assert!(good || !required("module"), "{}", ran.out);
    if !good {
        eprintln!("skipped: the module layer cannot be measured here");
    }
    good && usable(bench, "sandbox")
}

/// Processes of a bench's sandboxes, by the state directory in their command lines.
fn processes(bench: &Bench) -> Vec<String> {
    let state = bench.dir.path().to_string_lossy().into_owned();
    fs::read_dir("/proc")
        .expect("/proc is there")
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|cmdline| String::from_utf8_lossy(&cmdline).replace('\0', " "))
        .filter(|cmdline| cmdline.contains(&state))
        .collect()
}

fn mounts(bench: &Bench) -> usize {
    let state = bench.dir.path().to_string_lossy().into_owned();
    fs::read_to_string("/proc/self/mounts")
        .expect("/proc is there")
        .lines()
        .filter(|line| line.contains(&state))
        .count()
}

fn killed_half_way(engine: &str) {
    let bench = Bench::new();
    if !usable(&bench, engine) {
        return;
    }
    let args = [
        "run",
        "reference",
        "-e",
        engine,
        "-l",
        "native",
        "-s",
        "three_restarts",
    ];
    let mut child = bench.run_until(&args, "\"act\":\"plant_marks\"");
    child.kill().expect("a child can be killed");
    let status = child.wait().expect("a child can be waited for");
    assert_eq!(status.signal(), Some(9));

    bench
        .run(&["check", "runs"])
        .says(2, &["inconclusive", "the record ends before the restart"]);
    let collected = bench.run(&["gc"]);
    collected.says(0, &["0 not removed"]);
    assert_eq!(bench.left(), "");
    assert_eq!(processes(&bench), [""; 0]);
    assert_eq!(mounts(&bench), 0);
}

#[test]
fn a_run_killed_half_way_is_readable_and_collected_on_sandbox() {
    killed_half_way("sandbox");
}

#[test]
fn a_run_killed_half_way_is_readable_and_collected_on_docker() {
    killed_half_way("docker");
}

fn interrupted(engine: &str) {
    let bench = Bench::new();
    if !usable(&bench, engine) {
        return;
    }
    let args = [
        "run",
        "reference",
        "-e",
        engine,
        "-l",
        "native",
        "-s",
        "three_restarts",
    ];
    let mut child = bench.run_until(&args, "\"act\":\"start\"");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("process ids fit"));
    kill(pid, Signal::SIGINT).expect("it is there");
    let status = child.wait().expect("a child can be waited for");
    assert_eq!(status.code(), Some(130));
    assert_eq!(bench.left(), "");
    assert_eq!(processes(&bench), [""; 0]);
}

#[test]
fn an_interrupt_removes_what_was_made_on_sandbox() {
    interrupted("sandbox");
}

#[test]
fn an_interrupt_removes_what_was_made_on_docker() {
    interrupted("docker");
}

#[test]
fn a_kept_workspace_is_found_by_gc() {
    let bench = Bench::new();
    if !usable(&bench, "sandbox") {
        return;
    }
    bench
        .run(&[
            "run",
            "reference",
            "-e",
            "sandbox",
            "-l",
            "native",
            "-s",
            "cold_start",
            "--keep",
        ])
        .says(0, &["1 pass"]);
    assert!(bench.left().contains("volume"), "{}", bench.left());
    bench.run(&["gc"]).says(0, &["removed: sandbox volume"]);
    assert_eq!(bench.left(), "");
}

#[test]
fn a_record_is_judged_again_without_an_engine() {
    let bench = Bench::new();
    if !usable(&bench, "sandbox") {
        return;
    }
    let ran = bench.run(&[
        "run",
        "reference",
        "-e",
        "sandbox",
        "-l",
        "native",
        "-s",
        "warm_restart",
        "--format",
        "json",
    ]);
    ran.says(0, &[]);
    let live: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
    let again = bench.run(&["check", "runs", "--format", "json"]);
    again.says(0, &[]);
    let again: serde_json::Value = serde_json::from_str(&again.out).expect("it is JSON");
    assert_eq!(
        live["results"][0]["verdicts"],
        again["results"][0]["verdicts"]
    );
    bench
        .run(&["check", "runs", "--format", "junit"])
        .says(0, &["<testsuites", "session_continues"]);

    let record = bench.record().expect("it was recorded");
    let text = fs::read_to_string(&record).expect("it is text");
    fs::write(
        &record,
        text.replacen("\"format\":\"1.0\"", "\"format\":\"9.0\"", 1),
    )
    .expect("written");
    bench.run(&["check", "runs"]).says(65, &["9.0", "newer"]);
    fs::write(&record, "{}\n").expect("written");
    bench
        .run(&["check", "runs"])
        .says(65, &["does not begin with a header"]);
    fs::remove_dir_all(bench.dir.path().join("runs")).expect("removed");
    bench.run(&["check", "."]).says(74, &["no record below"]);
}

#[test]
fn names_nobody_has_bring_the_nearest() {
    let bench = Bench::new();
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
    let bench = Bench::new();
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
    let bench = Bench::new();
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
        .args([
            "run",
            "reference",
            "-e",
            "sandbox",
            "-l",
            "native",
            "-s",
            "three_restarts",
        ])
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
    let bench = Bench::new();
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
    let bench = Bench::new();
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
    let bench = Bench::new();
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
    let bench = Bench::new();
    if !modules_usable(&bench) {
        return;
    }
    let place = registry(&bench, MAIN, "#!/bin/bash\necho started nothing\n");
    run_module(&bench, &place, &["--timeout", "24"]).says(1, &["the task never reached the model"]);
}

#[test]
fn a_port_that_agentapi_needs_is_refused() {
    let bench = Bench::new();
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
    let bench = Bench::new();
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
    let bench = Bench::new();
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
