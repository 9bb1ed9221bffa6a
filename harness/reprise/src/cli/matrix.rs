//! `reprise matrix` and `reprise docs`: claims beside measurements, as a table or as the compatibility page.

use std::fs;
use std::path::{Path, PathBuf};

use reprise_model::{MatrixRow, Results};

use super::args::{DocsArgs, MatrixArgs};
use super::{Exit, Failure, show};
use crate::matrix;
use crate::scenario::Catalogue;

pub(super) fn main(args: &MatrixArgs) -> Result<Exit, Failure> {
    let rows = rows(&args.runs, &args.results)?;
    show::found(rows.as_slice(), args.format, reprise_report::matrix, 180)?;
    Ok(Exit::Pass)
}

pub(super) fn docs(args: &DocsArgs) -> Result<Exit, Failure> {
    let rows = rows(&args.runs, &args.results)?;
    let template = match &args.template {
        Some(path) => read(path)?,
        None => reprise_report::PAGE_TEMPLATE.to_owned(),
    };
    let page = reprise_report::page(&template, &rows)
        .map_err(|error| Failure::message(Exit::BadFile, error))?;
    if let Some(path) = &args.write {
        return fs::write(path, page).map(|()| Exit::Pass).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::message(Exit::Io, message)
        });
    }
    if let Some(path) = &args.check {
        let name = path.display().to_string();
        return Ok(
            match reprise_report::difference(&read(path)?, &page, &name) {
                None => Exit::Pass,
                Some(difference) => {
                    print!("{difference}");
                    Exit::Fail
                }
            },
        );
    }
    print!("{page}");
    Ok(Exit::Pass)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::message(Exit::Io, format!("cannot read {}: {error}", path.display()))
    })
}

/// The rows that some runs' results give.
fn rows(runs: &Path, named: &[PathBuf]) -> Result<Vec<MatrixRow>, Failure> {
    let results = load_all(runs, named)?;
    Ok(matrix::rows(&Catalogue::builtin()?, &results))
}

/// The results of the runs that were named, or of the last one.
pub(super) fn load_all(runs: &Path, named: &[PathBuf]) -> Result<Vec<Results>, Failure> {
    let files = if named.is_empty() {
        vec![last(runs)?]
    } else {
        named.iter().map(|path| results_in(path)).collect()
    };
    files.iter().map(|file| load(file)).collect()
}

/// A run's directory holds its results; a file is the results.
fn results_in(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("results.json")
    } else {
        path.to_owned()
    }
}

fn load(file: &Path) -> Result<Results, Failure> {
    serde_json::from_str(&read(file)?).map_err(|error| {
        let message = format!("{} holds no results of a run: {error}", file.display());
        Failure::message(Exit::BadFile, message)
    })
}

/// The results of the last run below a directory: runs are named by when they began.
fn last(runs: &Path) -> Result<PathBuf, Failure> {
    let none = || {
        let message = format!(
            "there is no run with results in {} (measure one with `reprise run`, or name a run's directory)",
            runs.display()
        );
        Failure::message(Exit::Io, message)
    };
    let mut found: Vec<PathBuf> = fs::read_dir(runs)
        .map_err(|_| none())?
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("results.json"))
        .filter(|file| file.is_file())
        .collect();
    found.sort();
    found.pop().ok_or_else(none)
}
