//! `reprise check`: verdicts from a record alone.

use super::args::CheckArgs;
use super::{Exit, Failure, run, show};
use crate::record::{self, RecordError};

pub(super) fn main(args: &CheckArgs) -> Result<Exit, Failure> {
    let failure = |error: RecordError| {
        let exit = match error {
            RecordError::Read { .. } | RecordError::NotFound { .. } => Exit::Io,
            _ => Exit::BadFile,
        };
        Failure::message(exit, error)
    };
    let mut results = Vec::new();
    for dir in record::find_cells(&args.directory).map_err(failure)? {
        let history = record::read(&dir).map_err(failure)?;
        if args.outline {
            let lines = reprise_model::outline(&history).join("\n");
            show::show(&format!("{}\n{lines}\n", history.header.cell))?;
            continue;
        }
        results.push(crate::runner::judge(
            &dir,
            &history.header.cell,
            history.header.subject,
        ));
    }
    if args.outline {
        return Ok(Exit::Pass);
    }
    run::print(args.format, &results, &[], false)?;
    Ok(Exit::of(
        results.iter().map(|result| result.judgement),
        false,
        false,
    ))
}
