//! The engines' conformance suite: each case on each engine is one test.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt;
use libtest_mimic::{Arguments, Trial};
use reprise_engine::Engine;
use reprise_engine::conformance::{Bench, CASES};
use reprise_engine::docker::Docker;
use reprise_engine::kubernetes::{Kubernetes, Place, Shape};
use reprise_engine::sandbox::Sandbox;
use reprise_model::RunId;
use reprise_tests::{kubeconfig, program, required};
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
                    let bench = Bench {
                        engine: Arc::clone(&engine),
                        program: program(),
                    };
                    let ran = runtime.block_on(AssertUnwindSafe((case.run)(bench)).catch_unwind());
                    // What belongs to no workspace goes however the case ended.
                    runtime.block_on(engine.close())?;
                    match ran {
                        Ok(()) => Ok(()),
                        Err(panic) => resume_unwind(panic),
                    }
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
    let kubernetes = trials("kubernetes", |runtime, _| {
        let kubeconfig = kubeconfig()
            .ok_or("REPRISE_TEST_KUBECONFIG names no cluster (ci/cluster up prints one)")?;
        let place = Place {
            kubeconfig: Some(kubeconfig),
            ..Place::default()
        };
        let connecting = Kubernetes::connect(&place, Shape::default(), program(), RunId::draw());
        let kubernetes = runtime
            .block_on(connecting)
            .map_err(|missing| missing.to_string())?;
        Ok(Arc::new(kubernetes))
    });
    let all = sandbox.chain(docker).chain(kubernetes);
    libtest_mimic::run(&args, all.collect()).exit();
}
