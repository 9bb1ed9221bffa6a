//! The program as a user meets it: run in a place of the test's own.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test's helper panics where its test shall fail"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{kubeconfig, of_cluster, program, required, shared};

/// A place of its own for each test: nothing of the user's is touched, and what is left behind can be seen.
pub struct Bench {
    /// The place.
    pub dir: TempDir,
}

impl Bench {
    /// A new place.
    pub fn open() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary directory can be made"),
        }
    }

    /// The program with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(args)
            .env("REPRISE_STATE", self.dir.path().join("state"))
            .current_dir(self.dir.path())
            .env_remove("REPRISE_REGISTRY");
        of_cluster(&mut command);
        if let Some(shared) = shared() {
            command.env(
                "REPRISE_AGENTAPI_SOURCE",
                shared.join("upstream/coder-agentapi.bundle"),
            );
        }
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().expect("the program runs"))
    }

    /// The record of the only cell that was measured.
    pub fn record(&self) -> Option<PathBuf> {
        walk(&self.dir.path().join("runs"))
            .into_iter()
            .find(|path| path.ends_with("history.jsonl"))
    }

    /// Starts a run and waits until its record holds `text`.
    pub fn run_until(&self, args: &[&str], text: &str) -> Child {
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
    pub fn left(&self) -> String {
        self.left_on(&[])
    }

    /// What the engine that these arguments name still holds of this bench's runs.
    pub fn left_on(&self, engine: &[&str]) -> String {
        let ran = self.run(&[&["gc", "--all", "--dry-run"], engine].concat());
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
            // A name ends with the id of an instance, a workspace or a run.
            .and_then(|name| name.get(name.len().saturating_sub(36)..))
            .is_some_and(|id| records.contains(id))
    }
}

/// What is typed to measure the reference agent at a layer, and more.
#[must_use]
pub fn reference<'a>(engine: &'a str, layer: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "reference", "-e", engine, "-l", layer], more].concat()
}

/// What is typed to measure a cell of the reference agent's, and more.
#[must_use]
pub fn reference_cell<'a>(
    engine: &'a str,
    layer: &'a str,
    scenario: &'a str,
    more: &[&'a str],
) -> Vec<&'a str> {
    reference(engine, layer, &[&["-s", scenario], more].concat())
}

/// What the program did.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
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
    /// Asserts its exit code and words that it must have said.
    #[track_caller]
    pub fn says(&self, code: i32, words: &[&str]) {
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
pub fn usable(bench: &Bench, engine: &str) -> bool {
    let ran = match engine {
        "kubernetes" if kubeconfig().is_none() && !required(engine) => {
            eprintln!("skipped: REPRISE_TEST_KUBECONFIG names no cluster");
            return false;
        }
        "kubernetes" => bench.run(&["doctor", "--engine", "kubernetes"]),
        _ => bench.run(&["doctor"]),
    };
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
pub fn modules_usable(bench: &Bench) -> bool {
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
pub fn processes(bench: &Bench) -> Vec<String> {
    let state = bench.dir.path().to_string_lossy().into_owned();
    fs::read_dir("/proc")
        .expect("/proc is there")
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|cmdline| String::from_utf8_lossy(&cmdline).replace('\0', " "))
        .filter(|cmdline| cmdline.contains(&state))
        .collect()
}

/// Mounts below a bench's place.
pub fn mounts(bench: &Bench) -> usize {
    let state = bench.dir.path().to_string_lossy().into_owned();
    fs::read_to_string("/proc/self/mounts")
        .expect("/proc is there")
        .lines()
        .filter(|line| line.contains(&state))
        .count()
}
