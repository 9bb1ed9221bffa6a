//! One static program in every role: which one its name and first argument say.

use std::process::ExitCode;

fn main() -> ExitCode {
    reprise::main()
}
