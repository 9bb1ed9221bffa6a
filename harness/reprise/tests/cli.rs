//! What the command line prints, as it prints it, and that what is generated is what is checked in.

use std::path::Path;
use std::process::Command;

#[test]
fn help_and_errors() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

#[test]
fn schemas_are_those_of_the_types() {
    for of in ["scenario", "agent", "faults"] {
        let output = Command::new(env!("CARGO_BIN_EXE_reprise"))
            .args(["schema", of])
            .output()
            .expect("the program runs");
        let printed = String::from_utf8(output.stdout).expect("a schema is text");
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/schema/{of}.json"));
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            printed, kept,
            "run `reprise schema {of} > scenarios/schema/{of}.json`"
        );
    }
}

#[test]
fn every_scenario_and_profile_fits_its_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for (dir, of) in [(root.clone(), "scenario"), (root.join("agents"), "agent")] {
        let schema = std::fs::read_to_string(root.join(format!("schema/{of}.json")))
            .expect("the schema is checked in");
        let schema = serde_json::from_str(&schema).expect("a schema is JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema is one");
        for entry in std::fs::read_dir(dir).expect("the directory is there") {
            let path = entry.expect("it can be listed").path();
            if path.ends_with("faults.yaml") {
                continue;
            }
            if path.extension().is_some_and(|end| end == "yaml") {
                let text = std::fs::read_to_string(&path).expect("it is text");
                let value: serde_json::Value = serde_yaml::from_str(&text).expect("it is YAML");
                if let Err(error) = validator.validate(&value) {
                    panic!("{}: {error}", path.display());
                }
            }
        }
    }
}

#[test]
fn the_readme_names_every_command_and_exit_code() {
    let readme = include_str!("../../../README.md");
    let help = Command::new(env!("CARGO_BIN_EXE_reprise"))
        .arg("--help")
        .output()
        .expect("the program runs");
    let help = String::from_utf8(help.stdout).expect("help is text");
    for command in [
        "run", "check", "doctor", "gc", "schema", "matrix", "docs", "drift", "images", "agent",
        "verify", "repro", "audit",
    ] {
        assert!(
            help.contains(command) && readme.contains(&format!("reprise {command}")),
            "{command}"
        );
    }
    for code in ["64", "65", "69", "74", "130"] {
        assert!(help.contains(code) && readme.contains(code), "{code}");
    }
}
