//! Nothing that is kept of a run holds a credential, wherever it came from.

use std::fs;
use std::path::Path;

use reprise_tests::user::{Bench, usable};

/// Words that must be found nowhere, each planted elsewhere.
const CANARIES: [&str; 3] = [
    "canary-of-the-environment-5d1c",
    "canary-of-a-header-9b7e",
    "canary-of-a-body-71fa",
];

fn holding(dir: &Path, word: &str) -> Vec<String> {
    walkdir::WalkDir::new(dir)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        })
        .map(|entry| entry.path().display().to_string())
        .collect()
}

#[test]
fn no_canary_is_found_in_a_run_or_on_the_terminal() {
    let bench = Bench::open();
    if !usable(&bench, "sandbox") {
        return;
    }
    let [environment, header, body] = CANARIES;
    let agents = bench.dir.path().join("catalogue/agents");
    fs::create_dir_all(&agents).expect("made");
    // The agent is told one canary as its configuration, says another in what it is told, and sends a third in a header.
    let profile = format!(
        "name: talkative\ntitle: Talkative\ncommand: reference-agent\ninstall: builtin\nenv:\n  REFERENCE_API_BASE: http://${{gateway}}/v1\n  TALKATIVE_API_KEY: {environment}\nclaim: {{paths: [\".local/share/reference-agent/**\"]}}\nnative:\n  version: [reference-agent, --version]\n  cold: [sh, -c, \"reprise workspace-agent request GET http://${{gateway}}/v1/models?key={header}; echo $TALKATIVE_API_KEY; reference-agent run \\\"$0 {body}\\\"\", \"${{message}}\"]\n  resumed: [reference-agent, run, --resume, \"${{message}} {body}\"]\n"
    );
    fs::write(agents.join("talkative.yaml"), profile).expect("written");
    let scenario = "name: warm\nsummary: s\nsteps: [start, task, restart: stop, follow_up]\nchecks: [session_continues, prompt_not_resent]\n";
    fs::write(bench.dir.path().join("catalogue/warm.yaml"), scenario).expect("written");
    let mut command = bench.command(&[
        "run",
        "talkative",
        "-e",
        "sandbox",
        "-l",
        "native",
        "--catalogue",
        "catalogue",
    ]);
    // What is secret is what this program's own environment calls so.
    let output = command
        .env("CANARY_API_KEY", environment)
        .env("CANARY_TOKEN", header)
        .env("CANARY_SECRET", body)
        .output()
        .expect("the program runs");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
    let runs = bench.dir.path().join("runs");
    for canary in CANARIES {
        assert!(!said.contains(canary), "{canary} was printed:\n{said}");
        assert_eq!(holding(&runs, canary), [""; 0], "{canary}");
    }
    // They were there to be masked.
    let record = bench.record().expect("it was recorded");
    let text = fs::read_to_string(&record).expect("it is text");
    assert!(text.contains("[masked]"), "{text}");
}
