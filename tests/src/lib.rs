//! What the end-to-end tests share: the built program, and what this machine must have.

pub mod subjects;
pub mod user;

use std::path::PathBuf;
use std::process::Command;

/// The program under test: built beside the test's own executable.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let program = test
        .ancestors()
        .nth(2)
        .expect("a test lies in target/…/deps")
        .join("reprise");
    assert!(
        program.is_file(),
        "{} is not built; run `cargo build -p reprise` first",
        program.display()
    );
    program
}

/// Whether `REPRISE_REQUIRE` (names separated by commas) names a part: then its absence is a failure and not a skip.
#[must_use]
pub fn required(part: &str) -> bool {
    std::env::var("REPRISE_REQUIRE").is_ok_and(|parts| {
        parts
            .split(',')
            .map(str::trim)
            .any(|named| named == part || named == "all")
    })
}

/// Where the sources are that tests may use instead of the public ones: `REPRISE_SHARED`.
#[must_use]
pub fn shared() -> Option<PathBuf> {
    std::env::var_os("REPRISE_SHARED")
        .map(PathBuf::from)
        .filter(|path| path.is_dir())
}

/// The kubeconfig of a cluster that tests may use: `REPRISE_TEST_KUBECONFIG`. A user's own cluster is never touched.
#[must_use]
pub fn kubeconfig() -> Option<PathBuf> {
    std::env::var_os("REPRISE_TEST_KUBECONFIG").map(PathBuf::from)
}

/// Has a command of the program work in that cluster.
pub fn of_cluster(command: &mut Command) -> &mut Command {
    if let Some(kubeconfig) = kubeconfig() {
        command.env("KUBECONFIG", kubeconfig);
    }
    // Only who made the cluster can do it.
    if let Some(restart) = std::env::var_os("REPRISE_TEST_RESTART_KUBELET") {
        command.env("REPRISE_RESTART_KUBELET", restart);
    }
    command
}

/// Ends a test that this machine cannot run, saying why.
///
/// # Errors
/// Never: a part that is required must not come here.
pub fn skipped(reason: &str) -> Result<(), libtest_mimic::Failed> {
    eprintln!("skipped: {reason}");
    Ok(())
}
