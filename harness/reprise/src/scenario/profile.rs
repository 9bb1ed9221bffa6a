//! An agent's profile: how it is installed, configured, started natively, and by which module.

use std::collections::BTreeMap;

use reprise_model::{
    AgentName, CheckName, Claim, Judgement, Layer, ModuleRef, ScenarioName, Subject, TurnRule,
};
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AgentapiFile;
use super::expand::Placeholders;
use super::file::{Document, FileError};

/// What is known of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentProfile {
    /// Its name; the file is called so, too.
    pub name: AgentName,
    /// Its name for people.
    pub title: String,
    /// What it is called on PATH.
    pub command: String,
    /// How its program is obtained.
    pub install: Install,
    /// How its own turns are told from titles and summaries.
    #[serde(default)]
    pub turns: TurnRule,
    /// Its documented configuration, as environment. `${gateway}` is the model API's address.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What is claimed of it.
    pub claim: Claim,
    /// What the compatibility page notes of it.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// Its documented commands.
    #[serde(default)]
    pub native: Option<NativeCommands>,
    /// Its module.
    #[serde(default)]
    pub module: Option<ModuleProfile>,
    /// Log files below the home that are kept with the record.
    #[serde(default)]
    pub logs: Vec<String>,
}

/// A note of the compatibility page, and what shows whether it is true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What is noted, as a sentence.
    pub text: String,
    /// What must be seen for it to be true.
    pub shown_by: ShownBy,
}

/// What shows a note true or false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShownBy {
    /// A check's verdict in a scenario.
    Check {
        /// At which layer.
        layer: Layer,
        /// In which scenario.
        scenario: ScenarioName,
        /// Which check.
        check: CheckName,
        /// What it must say.
        says: Judgement,
    },
    /// Each turn of this scenario, at the native layer, adds to what the agent keeps on disk.
    Grows(ScenarioName),
    /// The module has a variable of this name.
    Variable(String),
    /// Nothing that can be measured here, and why.
    Unmeasured(String),
}

/// How an agent's program is obtained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Install {
    /// From package registries.
    Packages(Packages),
    /// It is this program under another name.
    Builtin,
    /// From its vendor only, to talk with its vendor's service only: measured live, with the user's own account, and
    /// otherwise by its stand-in.
    Vendor(Vendor),
}

/// Packages, pinned in `images/agents.lock`, and what is started from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// Which ones. The first one's version is the agent's.
    pub from: Vec<Package>,
    /// Programs by what they are called on PATH: the command line that each one is. `${npm}` and `${pypi}` are where
    /// packages lie in the workspace, each in a directory of its name.
    pub commands: BTreeMap<String, Vec<String>>,
}

/// A package of a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// `@scope/name` of npm's registry.
    Npm(String),
    /// A distribution of Python's package index, with all it requires.
    Pypi(String),
}

/// An agent that needs its vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// Why it cannot be measured offline.
    pub why: String,
    /// Where the vendor documents its installation.
    pub documented: String,
    /// Environment variables that hold the user's own credentials.
    pub credentials: Vec<String>,
    /// Hosts it must reach, and no others.
    pub hosts: Vec<String>,
}

impl AgentProfile {
    /// What a measurement of it rests on where nobody asks otherwise.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match self.install {
            Install::Packages(_) => Subject::RealAgent,
            Install::Builtin | Install::Vendor(_) => Subject::StandIn,
        }
    }
}

/// An agent's own commands. `${message}` is what it is told, `${session}` a name for the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NativeCommands {
    /// Files below the home that its documentation asks for, written before its first start.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Prints its version.
    pub version: Vec<String>,
    /// Takes a task in a new session.
    pub cold: Vec<String>,
    /// Goes on with that session.
    pub resumed: Vec<String>,
}

/// The module that starts an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleProfile {
    /// The module, and the release that is measured where none is named.
    pub source: ModuleRef,
    /// Which registry has it.
    #[serde(default)]
    pub registry: Registry,
    /// The versions of AgentAPI it may be measured with, the best first.
    pub agentapi: Vec<Version>,
    /// AgentAPI's port.
    #[serde(default = "agentapi_port")]
    pub port: u16,
    /// The module's variables. In their strings, `${gateway}` and `${home}` are known.
    #[serde(default)]
    pub variables: BTreeMap<String, Value>,
    /// Environment of the workspace beside the agent's own.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files below the home that a template would put there, written before the first start.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// How a template hands the task to the module.
    pub task: TaskChannel,
    /// The variable that says where the agent works, if that is not always said.
    #[serde(default)]
    pub directory: Option<String>,
    /// Where AgentAPI keeps its state, below the home.
    #[serde(default)]
    pub state_file: Option<String>,
    /// Where AgentAPI's process id is kept, below the home.
    #[serde(default)]
    pub pid_file: Option<String>,
}

impl ModuleProfile {
    /// Where a file of AgentAPI's is, below the home.
    #[must_use]
    pub fn agentapi_file(&self, file: AgentapiFile) -> Option<&str> {
        match file {
            AgentapiFile::State => self.state_file.as_deref(),
            AgentapiFile::Pid => self.pid_file.as_deref(),
        }
    }
}

fn agentapi_port() -> u16 {
    3284
}

/// Which registry a module comes from where none is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Registry {
    /// The public one.
    #[default]
    Public,
    /// The one that comes with reprise.
    Builtin,
}

/// How a task's prompt reaches a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskChannel {
    /// By an environment variable of the agent.
    Env(String),
    /// By a variable of the module.
    Variable(String),
    /// The module reads `data.coder_task`.
    CoderTask,
}

impl AgentProfile {
    /// Reads a profile from a file's text.
    ///
    /// # Errors
    /// With the place in the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        let document = Document { name: file, text };
        let profile: Self = document.read()?;
        if profile.native.is_none() && profile.module.is_none() {
            let message =
                "neither `native` nor `module` is there, so the agent could not be started";
            return Err(document.about("name", message));
        }
        let known = Placeholders::default()
            .with("gateway", "")
            .with("home", "")
            .with("directory", "")
            .with("message", "")
            .with("session", "");
        let native = profile.native.iter().flat_map(|native| {
            let commands = native.cold.iter().chain(&native.resumed);
            commands.chain(native.files.values())
        });
        let module = profile
            .module
            .iter()
            .flat_map(|module| module.env.values().chain(module.files.values()));
        for text in profile.env.values().chain(native).chain(module) {
            known
                .expand(text)
                .map_err(|error| document.about(text, error.to_string()))?;
        }
        if let Install::Packages(packages) = &profile.install {
            let lies = Placeholders::default().with("npm", "").with("pypi", "");
            for text in packages.commands.values().flatten() {
                lies.expand(text)
                    .map_err(|error| document.about(text, error.to_string()))?;
            }
            if packages.from.is_empty() {
                return Err(document.about("from", "no package is named"));
            }
            if !packages.commands.contains_key(&profile.command) {
                let message = format!("no command of the packages is `{}`", profile.command);
                return Err(document.about("commands", message));
            }
        }
        if let Some(module) = &profile.module
            && module.source.version.is_none()
            && module.registry == Registry::Public
        {
            let shown = module.source.to_string();
            let message = "a module of the public registry needs a released version";
            return Err(document
                .about(&shown, message)
                .help(format!("write {shown}@VERSION")));
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name: a\ntitle: A\ncommand: a\nclaim: {paths: []}\ninstall:\n  packages: {from: [{npm: b}], commands: {a: [\"${npm}/b/c\"]}}\nenv: {HOST: \"http://${gateway}\"}\nnative: {version: [a], cold: [a, \"${message}\"], resumed: [a]}\n";

    #[test]
    fn reads_a_profile_and_refuses_what_it_does_not_know() {
        AgentProfile::parse("a.yaml", GOOD).expect("it is a profile");
        for (good, bad, named) in [
            ("${message}", "${massage}", "massage"),
            ("command: a\n", "command: b\n", "`b`"),
            ("title", "titel", "titel"),
            ("{npm: b}", "{pnpm: b}", "pnpm"),
            ("${npm}", "${pnpm}", "pnpm"),
            ("[{npm: b}]", "[]", "no package"),
            ("native:", "module:", "version"),
        ] {
            let error = AgentProfile::parse("a.yaml", &GOOD.replace(good, bad))
                .expect_err("it is damaged")
                .to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*", at in 0usize..400, cut in 0usize..400) {
            let _ = AgentProfile::parse("x.yaml", &text);
            let mut damaged = GOOD.to_owned();
            damaged.truncate(cut.min(GOOD.len()));
            damaged.insert_str(at.min(damaged.len()), &text);
            let _ = AgentProfile::parse("x.yaml", &damaged);
        }
    }
}
