//! Which role the program plays. The sandbox's roles must come before any thread is started: namespaces are changed
//! by a single-threaded process only.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use reprise_engine::sandbox;

/// Plays the role that the program's name and first argument ask for.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let name = args
        .first()
        .and_then(|program| Path::new(program).file_name())
        .and_then(OsStr::to_str)
        .unwrap_or_default()
        .to_owned();
    if name == "coder" {
        return workspace_agent::coder_main(args);
    }
    if name == "reference-agent" {
        return stand_in::reference_main(args);
    }
    if stand_in::plays(&name) {
        return stand_in::play(&name, args);
    }
    match (args.get(1).and_then(|arg| arg.to_str()), args.get(2)) {
        (Some(sandbox::WORLD_ROLE), Some(dir)) => sandbox::world_main(Path::new(dir)),
        (Some(sandbox::ENTER_ROLE), Some(order)) => sandbox::enter_main(&order.to_string_lossy()),
        (Some("gateway"), role) => crate::gateway_role::main(
            role.and_then(|role| role.to_str()),
            args.get(3).map(Path::new),
        ),
        (Some("workspace-agent"), _) => workspace_agent::main(args.into_iter().skip(1)),
        _ => crate::cli::main(args),
    }
}
