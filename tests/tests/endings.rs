//! How runs end that do not come to their end, and what can be had of their records: each leaves a readable record and
//! nothing behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reprise_tests::user::{Bench, mounts, processes, reference_cell, usable};

fn killed_half_way(engine: &str) {
    let bench = Bench::open();
    if !usable(&bench, engine) {
        return;
    }
    let args = reference_cell(engine, "native", "three_restarts", &[]);
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
    let bench = Bench::open();
    if !usable(&bench, engine) {
        return;
    }
    let args = reference_cell(engine, "native", "three_restarts", &[]);
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
fn a_reader_that_has_seen_enough_is_no_error() {
    let bench = Bench::open();
    for args in [
        &["list"][..],
        &["run", "reference", "-l", "native", "-e", "sandbox"],
    ] {
        let mut child = bench
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        drop(child.stderr.take());
        let status = child.wait().expect("a child can be waited for");
        // 101 is the exit code of a panic.
        assert_ne!(status.code(), Some(101), "{args:?}");
    }
}

#[test]
fn a_kept_workspace_is_found_by_gc() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") {
        return;
    }
    bench
        .run(&reference_cell(
            "sandbox",
            "native",
            "cold_start",
            &["--keep"],
        ))
        .says(0, &["1 pass"]);
    assert!(bench.left().contains("volume"), "{}", bench.left());
    bench.run(&["gc"]).says(0, &["removed: sandbox volume"]);
    assert_eq!(bench.left(), "");
}

#[test]
fn a_record_is_judged_again_without_an_engine() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") {
        return;
    }
    let ran = bench.run(&reference_cell(
        "sandbox",
        "native",
        "warm_restart",
        &["--format", "json"],
    ));
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
        text.replacen("\"format\":\"1.1\"", "\"format\":\"9.0\"", 1),
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

/// How often a run is killed, each time at another moment.
const KILLS: u64 = 50;

#[test]
fn fifty_kills_leave_nothing_and_touch_nobody() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") {
        return;
    }
    // A neighbour that lives on all the while, in the same place.
    let neighbour = reference_cell(
        "sandbox",
        "native",
        "fifty_restarts",
        &["--repeat", "6", "--jobs", "1", "--runs", "neighbour"],
    );
    let mut neighbour = bench
        .command(&neighbour)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    for kill in 0..KILLS {
        let runs = format!("runs-{kill}");
        let args = reference_cell("sandbox", "native", "three_restarts", &["--runs", &runs]);
        let mut child = bench
            .command(&args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        // Not a wait for something, but the moment itself: spread over the whole of a run, in an order that repeats.
        std::thread::sleep(std::time::Duration::from_millis(kill * 7919 % 1200));
        // It may have ended.
        let _ = child.kill();
        child.wait().expect("a child can be waited for");
        let judged = bench.run(&["check", &runs]);
        assert!(
            matches!(judged.code, Some(0 | 2 | 74)),
            "after kill {kill}: {judged:?}"
        );
        if kill % 10 == 9 {
            bench.run(&["gc"]).says(0, &["0 not removed"]);
        }
    }
    let status = neighbour.wait().expect("a child can be waited for");
    assert_eq!(status.code(), Some(0), "the neighbour was disturbed");
    bench.run(&["gc"]).says(0, &["0 not removed"]);
    assert_eq!(bench.left(), "");
    assert_eq!(processes(&bench), [""; 0]);
    assert_eq!(mounts(&bench), 0);
}
