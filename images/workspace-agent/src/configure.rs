//! `coder exp mcp configure claude-code`: what Coder's command writes for Claude Code, so that it asks nothing when it starts
//! (<https://github.com/coder/coder/blob/main/cli/exp_mcp.go>).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use thiserror::Error;

/// Why nothing was configured.
#[derive(Debug, Error)]
pub enum ConfigureError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Claude Code's configuration is damaged.
    #[error("{} is no JSON object: {said}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        said: String,
    },
}

/// What of the environment goes into the configuration.
pub(crate) struct Environment {
    pub(crate) home: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) api_key: Option<String>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) server: Map<String, Value>,
}

impl Environment {
    /// The variables that Coder's command reads.
    pub(crate) fn of_process() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let server = [
            "CODER_AGENT_URL",
            "CODER_AGENT_TOKEN",
            "CODER_MCP_APP_STATUS_SLUG",
            "CODER_MCP_AI_AGENTAPI_URL",
        ];
        Self {
            home: variable("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from),
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("coder")),
            api_key: variable("CLAUDE_API_KEY"),
            system_prompt: variable("CODER_MCP_CLAUDE_SYSTEM_PROMPT"),
            server: server
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), variable(name)?.into())))
                .collect(),
        }
    }
}

/// Configures Claude Code for a project.
pub(crate) fn claude_code(project: &Path, environment: &Environment) -> Result<(), ConfigureError> {
    let path = environment.home.join(".claude.json");
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| ConfigureError::Io { path, source }
    };
    let damaged = |said: String| ConfigureError::Damaged {
        path: path.clone(),
        said,
    };
    let mut config: Map<String, Value> = match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(at(&path)(error)),
    };
    for (name, value) in [
        ("autoUpdaterStatus", json!("disabled")),
        ("bypassPermissionsModeAccepted", json!(true)),
        ("hasAcknowledgedCostThreshold", json!(true)),
        ("hasCompletedOnboarding", json!(true)),
    ] {
        config.insert(name.to_owned(), value);
    }
    if let Some(key) = &environment.api_key {
        config.insert("primaryApiKey".to_owned(), json!(key));
    }
    let projects = config.entry("projects").or_insert_with(|| json!({}));
    let name = project.display().to_string();
    let known = &mut projects[name];
    if !known.is_object() {
        *known = json!({});
    }
    known["hasTrustDialogAccepted"] = json!(true);
    known["hasCompletedProjectOnboarding"] = json!(true);
    known["mcpServers"]["coder"] = json!({
        "type": "stdio",
        "command": environment.program,
        "args": ["exp", "mcp", "server"],
        "env": environment.server,
    });
    let text = serde_json::to_string_pretty(&config).expect("a configuration is JSON");
    fs::write(&path, text).map_err(at(&path))?;

    let rules = environment.home.join(".claude/CLAUDE.md");
    if let Some(parent) = rules.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let prompt = environment.system_prompt.as_deref().unwrap_or_default();
    fs::write(&rules, instructions(prompt)).map_err(at(&rules))
}

/// The file of instructions, with the markers by which Coder's command finds its own parts again.
fn instructions(system_prompt: &str) -> String {
    format!(
        "<coder-prompt>\nReport your progress with the tool coder_report_task.\n</coder-prompt>\n<system-prompt>\n{system_prompt}\n</system-prompt>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_there_already_stays() {
        let home = tempfile::tempdir().expect("a directory can be made");
        let file = home.path().join(".claude.json");
        fs::write(&file, r#"{"userID": "u", "projects": {"/p": {"n": 1}}}"#)
            .expect("it is written");
        let environment = Environment {
            home: home.path().to_owned(),
            program: "/bin/coder".into(),
            api_key: Some("key".to_owned()),
            system_prompt: None,
            server: Map::new(),
        };
        for _ in 0..2 {
            claude_code(Path::new("/p"), &environment).expect("it can be configured");
        }
        let text = fs::read(&file).expect("it is there");
        let config: Value = serde_json::from_slice(&text).expect("it is JSON");
        assert_eq!(config["userID"], "u");
        assert_eq!(config["primaryApiKey"], "key");
        assert_eq!(config["projects"]["/p"]["n"], 1);
        assert_eq!(config["projects"]["/p"]["hasTrustDialogAccepted"], true);
        fs::write(&file, "[]").expect("it is written");
        let refused = claude_code(Path::new("/p"), &environment);
        assert!(matches!(refused, Err(ConfigureError::Damaged { .. })));
    }
}
