//! An agent's profile: how it is installed, configured, started natively, and by which module.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reprise_model::{AgentName, ModuleRef, Subject};
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Whether this is the vendor's own program.
    pub subject: Subject,
    /// How its program is obtained.
    pub install: Install,
    /// Its documented configuration, as environment. `${gateway}` is the model API's address.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its session files, as globs below the home.
    #[serde(default)]
    pub session_paths: Vec<String>,
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

/// How an agent's program is obtained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Install {
    /// From a platform package of npm's registry, pinned in `images/agents.lock`.
    Npm {
        /// `@scope/name`.
        package: String,
        /// The program's path in the package.
        program: PathBuf,
        /// What it is called on PATH.
        command: String,
    },
    /// It is this program under another name.
    Builtin {
        /// What it is called on PATH.
        command: String,
    },
}

impl Install {
    /// What the agent is called on PATH.
    #[must_use]
    pub fn command(&self) -> &str {
        match self {
            Self::Npm { command, .. } | Self::Builtin { command } => command,
        }
    }
}

/// An agent's own commands. `${message}` is what it is told, `${session}` a name for the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NativeCommands {
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
    /// The module's variables.
    #[serde(default)]
    pub variables: BTreeMap<String, Value>,
    /// How a template hands the task to the module.
    pub task: TaskChannel,
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
            .with("message", "")
            .with("session", "");
        let native = profile
            .native
            .iter()
            .flat_map(|native| native.cold.iter().chain(&native.resumed));
        for text in profile.env.values().chain(native) {
            known
                .expand(text)
                .map_err(|error| document.about(text, error.to_string()))?;
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

    const GOOD: &str = "name: a\ntitle: A\nsubject: real-agent\ninstall:\n  npm: {package: a, program: a, command: a}\nenv: {HOST: \"http://${gateway}\"}\nnative: {version: [a], cold: [a, \"${message}\"], resumed: [a]}\n";

    #[test]
    fn reads_a_profile_and_refuses_what_it_does_not_know() {
        AgentProfile::parse("a.yaml", GOOD).expect("it is a profile");
        for (good, bad, named) in [
            ("${message}", "${massage}", "massage"),
            ("real-agent", "fake-agent", "fake-agent"),
            ("title", "titel", "titel"),
            ("npm", "pnpm", "pnpm"),
            ("native:", "module:", "version"),
        ] {
            let error = AgentProfile::parse("a.yaml", &GOOD.replace(good, bad))
                .expect_err("it is damaged")
                .to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
