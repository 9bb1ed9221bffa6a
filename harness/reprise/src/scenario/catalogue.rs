//! Every scenario and profile: those that come with this program, and those of a directory in their place.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use miette::Diagnostic;
use reprise_model::{AgentName, ScenarioName};
use thiserror::Error;

use super::file::{FileError, nearest};
use super::profile::AgentProfile;
use super::steps::Scenario;

/// A file beside the scenarios that is none.
const FAULTS: &str = "faults.yaml";

static BUILTIN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// What can be wrong with a catalogue or a question to it.
#[derive(Debug, Error, Diagnostic)]
pub enum CatalogueError {
    /// A file is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is called otherwise than what it holds.
    #[error("{file} holds `{name}`")]
    #[diagnostic(help("call the file {name}.yaml"))]
    Misnamed {
        /// The file.
        file: String,
        /// What it holds.
        name: String,
    },
    /// Nobody knows the name.
    #[error("there is no {kind} `{given}`")]
    Unknown {
        /// What was asked for.
        kind: &'static str,
        /// The name.
        given: String,
        /// The nearest, or all.
        #[help]
        help: String,
    },
}

/// Scenarios and profiles by name.
#[derive(Debug, Clone)]
pub struct Catalogue {
    scenarios: BTreeMap<ScenarioName, Scenario>,
    agents: BTreeMap<AgentName, AgentProfile>,
}

impl Catalogue {
    /// Reads what comes with this program.
    ///
    /// # Errors
    /// If a file is wrong; a test keeps that from being released.
    pub fn builtin() -> Result<Self, CatalogueError> {
        let texts = |dir: &str| -> Vec<(String, String)> {
            let files = if dir.is_empty() {
                Some(BUILTIN.files())
            } else {
                BUILTIN.get_dir(dir).map(Dir::files)
            };
            files
                .into_iter()
                .flatten()
                .filter(|file| file.path().extension().is_some_and(|end| end == "yaml"))
                .filter(|file| file.path() != Path::new(FAULTS))
                .filter_map(|file| {
                    let text = file.contents_utf8()?.to_owned();
                    Some((file.path().display().to_string(), text))
                })
                .collect()
        };
        Self::read(texts(""), texts("agents"))
    }

    /// Reads a directory laid out as `scenarios/` is.
    ///
    /// # Errors
    /// If it cannot be read or a file is wrong.
    pub fn of_dir(dir: &Path) -> Result<Self, CatalogueError> {
        Self::read(texts_of(dir)?, texts_of(&dir.join("agents"))?)
    }

    fn read(
        scenarios: Vec<(String, String)>,
        agents: Vec<(String, String)>,
    ) -> Result<Self, CatalogueError> {
        let named = |file: &str, name: &str| {
            if Path::new(file).file_stem().is_some_and(|stem| stem == name) {
                Ok(())
            } else {
                Err(CatalogueError::Misnamed {
                    file: file.to_owned(),
                    name: name.to_owned(),
                })
            }
        };
        let mut catalogue = Self {
            scenarios: BTreeMap::new(),
            agents: BTreeMap::new(),
        };
        for (file, text) in scenarios {
            let scenario = Scenario::parse(&file, &text)?;
            named(&file, scenario.name.as_str())?;
            catalogue.scenarios.insert(scenario.name.clone(), scenario);
        }
        for (file, text) in agents {
            let profile = AgentProfile::parse(&file, &text)?;
            named(&file, profile.name.as_str())?;
            catalogue.agents.insert(profile.name.clone(), profile);
        }
        Ok(catalogue)
    }

    /// Adds an agent, in the place of one of the same name.
    pub fn add(&mut self, profile: AgentProfile) {
        self.agents.insert(profile.name.clone(), profile);
    }

    /// Every scenario.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.values()
    }

    /// Every agent.
    pub fn agents(&self) -> impl Iterator<Item = &AgentProfile> {
        self.agents.values()
    }

    /// The agent of that name.
    ///
    /// # Errors
    /// With the nearest name.
    pub fn agent(&self, given: &str) -> Result<&AgentProfile, CatalogueError> {
        self.agents
            .values()
            .find(|profile| profile.name.as_str() == given)
            .ok_or_else(|| unknown("agent", given, self.agents.keys().map(AgentName::as_str)))
    }

    /// The scenario of that name.
    ///
    /// # Errors
    /// With the nearest name.
    pub fn scenario(&self, given: &str) -> Result<&Scenario, CatalogueError> {
        self.scenarios
            .values()
            .find(|scenario| scenario.name.as_str() == given)
            .ok_or_else(|| {
                unknown(
                    "scenario",
                    given,
                    self.scenarios.keys().map(ScenarioName::as_str),
                )
            })
    }
}

fn unknown<'a>(
    kind: &'static str,
    given: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> CatalogueError {
    let help = match nearest(given, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("there are: {}", names.collect::<Vec<_>>().join(", ")),
    };
    CatalogueError::Unknown {
        kind,
        given: given.to_owned(),
        help,
    }
}

fn texts_of(dir: &Path) -> Result<Vec<(String, String)>, CatalogueError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| CatalogueError::Unreadable { path, source }
    };
    let mut texts = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable(dir))? {
        let path = entry.map_err(unreadable(dir))?.path();
        let is_faults = path.file_name().is_some_and(|name| name == FAULTS);
        if !is_faults && path.extension().is_some_and(|end| end == "yaml") {
            let text = fs::read_to_string(&path).map_err(unreadable(&path))?;
            texts.push((path.display().to_string(), text));
        }
    }
    texts.sort();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_program_is_well_formed() {
        let catalogue = Catalogue::builtin().expect("a test reads it");
        assert!(catalogue.agent("goose").is_ok());
        assert!(catalogue.scenario("warm_restart").is_ok());
    }

    #[test]
    fn an_unknown_name_brings_the_nearest() {
        let catalogue = Catalogue::builtin().expect("a test reads it");
        match catalogue.agent("gose").expect_err("nobody is called so") {
            CatalogueError::Unknown { help, .. } => assert_eq!(help, "did you mean `goose`?"),
            other => panic!("{other}"),
        }
    }
}
