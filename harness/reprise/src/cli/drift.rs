//! `reprise drift`: this run against the verdicts that were last accepted.

use std::fs;
use std::path::Path;

use super::args::DriftArgs;
use super::matrix::load_all;
use super::{Exit, Failure};
use crate::matrix::{Baseline, baseline, drift};

pub(super) fn main(args: &DriftArgs) -> Result<Exit, Failure> {
    let results = load_all(&args.runs, &args.results)?;
    if args.accept {
        let mut accepted = if args.baseline.exists() {
            read(&args.baseline)?
        } else {
            Baseline::new()
        };
        accepted.extend(baseline(&results));
        let mut text = serde_json::to_string_pretty(&accepted).expect("a baseline is JSON");
        text.push('\n');
        return fs::write(&args.baseline, text)
            .map(|()| Exit::Pass)
            .map_err(|error| {
                let message = format!("cannot write {}: {error}", args.baseline.display());
                Failure::message(Exit::Io, message)
            });
    }
    let moved = drift(&read(&args.baseline)?, &results);
    for moved in &moved {
        println!("{moved}");
    }
    if moved.is_empty() {
        println!("nothing moved");
        return Ok(Exit::Pass);
    }
    eprintln!(
        "{} cell(s) moved; `reprise drift --accept` takes the new verdicts",
        moved.len()
    );
    Ok(Exit::Fail)
}

fn read(path: &Path) -> Result<Baseline, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        let message = format!(
            "cannot read {}: {error} (--baseline names another, --accept writes it)",
            path.display()
        );
        Failure::message(Exit::Io, message)
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} is no baseline: {error}", path.display());
        Failure::message(Exit::BadFile, message)
    })
}
