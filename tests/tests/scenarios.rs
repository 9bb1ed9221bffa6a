//! The mission, end to end: each (engine, agent, scenario) is one test that runs the program as a user would and compares
//! which checks fail with which should.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use reprise_tests::subjects::{Scenarios, Subject, subjects};
use reprise_tests::{kubeconfig, of_cluster, program, required, shared, skipped};
use serde_json::Value;

fn measure(
    subject: Subject,
    engine: &str,
    scenarios: Scenarios,
    runs: &Path,
) -> Result<(i32, Value), Failed> {
    let mut command = Command::new(program());
    command
        .args(["run", subject.agent, "--engine", engine])
        .args(["--layer", subject.layer])
        .args(["--require", "all", "--format", "json", "--runs"])
        .arg(runs);
    for (scenario, _) in scenarios {
        command.args(["--scenario", scenario]);
    }
    if let Some(module) = subject.module {
        command.args(["--module", module]);
    }
    if subject.stand_in {
        command.arg("--stand-in");
    }
    if subject.together && engine != "kubernetes" {
        command.args(["--jobs", "12"]);
    }
    if engine == "kubernetes" {
        of_cluster(&mut command);
        // The test cluster's other classes do not grow.
        if scenarios
            .iter()
            .any(|(scenario, _)| *scenario == "volume_grown")
        {
            command.args(["--storage-class", "growing"]);
        }
    }
    if let Some(shared) = shared() {
        command.env(
            "REPRISE_AGENTAPI_SOURCE",
            shared.join("upstream/coder-agentapi.bundle"),
        );
        if subject.released {
            command.env(
                "REPRISE_REGISTRY",
                shared.join("upstream/coder-registry.bundle"),
            );
        }
    }
    let output = command.output()?;
    let code = output.status.code().unwrap_or(-1);
    let results = serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("exit {code}, no results ({error}):\n{said}")
    })?;
    Ok((code, results))
}

/// The directory of a failed test's runs stays, for a look.
fn runs_dir(test: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test.replace("::", "-"));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// One test of some cells of a subject, which share what the run has beside them.
fn trial(name: String, subject: Subject, engine: &'static str, scenarios: Scenarios) -> Trial {
    let test = name.clone();
    Trial::test(name, move || {
        let runs = runs_dir(&test);
        let (code, results) = measure(subject, engine, scenarios, &runs)?;
        if let Some(missing) = results["not_measured"].get(0) {
            let reason = missing["reason"].as_str().unwrap_or_default();
            let part = if subject.released {
                "registry"
            } else {
                subject.agent
            };
            return if required(part) || required(subject.layer) {
                Err(reason.into())
            } else {
                skipped(reason)
            };
        }
        if code == 69 && !required(engine) {
            return skipped("the engine cannot be used here");
        }
        for (scenario, fails) in scenarios {
            compare(&results, scenario, fails)?;
        }
        let expected = i32::from(scenarios.iter().any(|(_, fails)| !fails.is_empty()));
        if code != expected {
            return Err(format!("exit code {code} where {expected} was due").into());
        }
        std::fs::remove_dir_all(&runs)?;
        Ok(())
    })
}

/// Holds a cell's verdicts against those it should have.
fn compare(results: &Value, scenario: &str, fails: &[&str]) -> Result<(), Failed> {
    let result = results["results"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|result| result["cell"]["scenario"] == scenario)
        .ok_or_else(|| format!("{scenario} has no result"))?;
    let verdicts = result["verdicts"]
        .as_array()
        .ok_or("there are no verdicts")?;
    let failing = |judgement: &str| -> BTreeSet<&str> {
        verdicts
            .iter()
            .filter(|verdict| verdict["judgement"] == judgement)
            .filter_map(|verdict| verdict["check"].as_str())
            .collect()
    };
    let wanted: BTreeSet<&str> = fails.iter().copied().collect();
    let inconclusive = failing("inconclusive");
    if failing("fail") != wanted || !inconclusive.is_empty() {
        return Err(format!(
            "these should fail: {wanted:?}\nthese did: {:?}, inconclusive: {inconclusive:?}\n{result:#}",
            failing("fail")
        )
        .into());
    }
    Ok(())
}

/// Whether an engine can be used here; the reason if not.
fn engine(name: &str) -> Result<(), String> {
    let mut command = Command::new(program());
    command.arg("doctor");
    if name == "kubernetes" {
        if kubeconfig().is_none() {
            return Err("REPRISE_TEST_KUBECONFIG names no cluster".to_owned());
        }
        of_cluster(&mut command).args(["--engine", "kubernetes"]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.contains(&format!(" {name}:")))
        .unwrap_or_default();
    if line.trim_start().starts_with("ok") {
        Ok(())
    } else {
        Err(line.trim().to_owned())
    }
}

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for subject in subjects() {
        for engine in subject.engines {
            // A run in a cluster has a gateway's pod and hands it the agent: the cells of a subject share them there. What
            // disturbs every other pod of the node stands alone.
            let together = subject.together || (*engine == "kubernetes" && !subject.alone);
            if together {
                let name = format!("{engine}::{}", subject.name);
                trials.push(trial(name, subject, engine, subject.scenarios));
                continue;
            }
            for scenario in subject.scenarios {
                let name = format!("{engine}::{}::{}", subject.name, scenario.0);
                trials.push(trial(name, subject, engine, std::slice::from_ref(scenario)));
            }
        }
    }
    // Listing must not ask the machine; only a run does, once for each engine that is left out.
    let listing = args.list;
    if !listing {
        for name in ["sandbox", "docker", "kubernetes"] {
            let wanted = trials.iter().any(|trial| {
                trial.name().starts_with(name)
                    && args
                        .filter
                        .as_ref()
                        .is_none_or(|filter| trial.name().contains(filter.as_str()))
            });
            if !wanted || required(name) {
                continue;
            }
            if let Err(reason) = engine(name) {
                eprintln!("skipped: {reason}");
                trials.retain(|trial| !trial.name().starts_with(name));
                // A filter for a single test must still find it.
                if args.exact
                    && let Some(filter) = &args.filter
                {
                    trials.push(Trial::test(filter.clone(), move || skipped(&reason)));
                }
            }
        }
    }
    libtest_mimic::run(&args, trials).exit();
}
