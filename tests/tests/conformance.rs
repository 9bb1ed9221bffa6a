//! The engines' conformance suite: each case on each engine is one test.

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use reprise_engine::Engine;
use reprise_engine::conformance::{Bench, CASES};
use reprise_engine::docker::Docker;
use reprise_engine::sandbox::Sandbox;
use reprise_tests::{program, required};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Connects to an engine that keeps its state in a directory of the test's own.
type Connect = fn(&Runtime, &TempDir) -> Result<Arc<dyn Engine>, String>;

fn trials(engine: &'static str, connect: Connect) -> impl Iterator<Item = Trial> {
    CASES.iter().map(move |case| {
        Trial::test(format!("{engine}::{}", case.name), move || {
            let runtime = Runtime::new()?;
            let state = tempfile::tempdir()?;
            match connect(&runtime, &state) {
                Ok(engine) => {
                    let program = program();
                    runtime.block_on((case.run)(Bench { engine, program }));
                    Ok(())
                }
                Err(reason) if required(engine) => Err(reason.into()),
                Err(reason) => {
                    eprintln!("skipped: {reason}");
                    Ok(())
                }
            }
        })
    })
}

fn main() {
    let args = Arguments::from_args();
    let sandbox = trials("sandbox", |_, state| {
        Sandbox::check().map_err(|missing| missing.to_string())?;
        Ok(Arc::new(Sandbox::new(program(), state.path().to_owned())))
    });
    let docker = trials("docker", |runtime, state| {
        let docker = runtime
            .block_on(Docker::connect(state.path().to_owned()))
            .map_err(|missing| missing.to_string())?;
        Ok(Arc::new(docker))
    });
    libtest_mimic::run(&args, sandbox.chain(docker).collect()).exit();
}
