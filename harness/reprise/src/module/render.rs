//! Renders a module with Terraform, once for each transition of its workspace, as Coder does: the same state, the same
//! workspace, a new agent token.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use reprise_model::{ModuleRef, Script, WorkspaceId};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::process::Command;
use uuid::Uuid;

use super::registry::ModuleRegistry;
use crate::tools::{CommandError, Provider, run, terraform_in};

/// Why a module did not render.
#[derive(Debug, Error)]
pub enum RenderError {
    /// Terraform refused; what it said is whole.
    #[error("{module} does not render{}\n{source}", because(problems))]
    Terraform {
        /// The module.
        module: ModuleRef,
        /// What the registry could not serve.
        problems: Vec<String>,
        /// What Terraform said.
        source: CommandError,
    },
    /// Its files could not be written.
    #[error("cannot write Terraform's files in {}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What Terraform shows is not what was expected.
    #[error("cannot understand what Terraform shows of {module}: {source}")]
    Shown {
        /// The module.
        module: ModuleRef,
        /// Why not.
        source: serde_json::Error,
    },
}

fn because(problems: &[String]) -> String {
    if problems.is_empty() {
        ":".to_owned()
    } else {
        format!(": {}", problems.join("; "))
    }
}

/// What a workspace does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// It starts.
    Start,
    /// It stops.
    Stop,
}

impl Transition {
    /// The word in `CODER_WORKSPACE_TRANSITION`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
        }
    }
}

/// The workspace a module is rendered for.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its owner's name.
    pub owner: String,
    /// The task it was made for.
    pub task: Uuid,
    /// The task's prompt.
    pub prompt: String,
    /// Where the control plane is.
    pub url: String,
}

/// What a module yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its scripts.
    pub scripts: Vec<Script>,
    /// What it sets in the workspace's environment.
    pub env: BTreeMap<String, String>,
    /// The agent's token in this transition.
    pub token: String,
    /// The agent's directory, if it names one.
    pub directory: Option<String>,
}

/// Renders one module for one workspace.
#[derive(Debug)]
pub struct Renderer {
    terraform: PathBuf,
    dir: PathBuf,
    module: ModuleRef,
    registry: ModuleRegistry,
    workspace: Workspace,
    initialized: bool,
}

impl Renderer {
    /// Prepares `dir` for rendering.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(
        terraform: PathBuf,
        provider: &Provider,
        registry: ModuleRegistry,
        dir: PathBuf,
        module: ModuleRef,
        variables: &BTreeMap<String, Value>,
        workspace: Workspace,
    ) -> Result<Self, RenderError> {
        let mut call = json!({
            "source": format!("registry.coder.com/{}/{}/coder", module.namespace, module.name),
            "version": ModuleRegistry::version(&module),
            "agent_id": "${coder_agent.main.id}",
        });
        for (name, value) in variables {
            call[name] = value.clone();
        }
        let arch = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        };
        let main = json!({
            "terraform": {"required_providers": {"coder": {
                "source": "coder/coder", "version": Provider::VERSION
            }}},
            "resource": {"coder_agent": {"main": {"os": "linux", "arch": arch}}},
            "module": {"agent": call},
        });
        let installation = provider.cli_config();
        let config = format!(
            "disable_checkpoint = true\nhost \"registry.coder.com\" {{\n  services = {{\n    \"modules.v1\" = \"{}\"\n  }}\n}}\n{installation}",
            registry.url()
        );
        let write = |name: &str, text: String| {
            fs::create_dir_all(&dir)
                .and_then(|()| fs::write(dir.join(name), text))
                .map_err(|source| RenderError::Io {
                    path: dir.clone(),
                    source,
                })
        };
        write("main.tf.json", main.to_string())?;
        write("terraformrc", config)?;
        Ok(Self {
            terraform,
            dir,
            module,
            registry,
            workspace,
            initialized: false,
        })
    }

    fn command(&self, transition: Transition, args: &[&str]) -> Command {
        let workspace = &self.workspace;
        let mut command = terraform_in(&self.terraform, &self.dir, args);
        command
            .env("CODER_AGENT_URL", &workspace.url)
            .env("CODER_WORKSPACE_ID", workspace.id.to_string())
            .env("CODER_WORKSPACE_NAME", &workspace.name)
            .env("CODER_WORKSPACE_OWNER", &workspace.owner)
            .env("CODER_WORKSPACE_TRANSITION", transition.as_str())
            .env("CODER_TASK_ID", workspace.task.to_string())
            .env("CODER_TASK_PROMPT", &workspace.prompt);
        command
    }

    async fn terraform(
        &self,
        transition: Transition,
        args: &[&str],
    ) -> Result<String, RenderError> {
        run(&mut self.command(transition, args))
            .await
            .map_err(|source| RenderError::Terraform {
                module: self.module.clone(),
                problems: self.registry.problems(),
                source,
            })
    }

    /// Gives the workspace and its owner other names; its id stays.
    pub fn rename(&mut self, name: &str, owner: &str) {
        name.clone_into(&mut self.workspace.name);
        owner.clone_into(&mut self.workspace.owner);
    }

    /// Renders for a transition.
    ///
    /// # Errors
    /// With all that Terraform said, if it refused.
    pub async fn render(&mut self, transition: Transition) -> Result<Rendered, RenderError> {
        if !self.initialized {
            let args = ["init", "-input=false", "-no-color"];
            self.terraform(transition, &args).await?;
            self.initialized = true;
        }
        let args = ["apply", "-input=false", "-no-color", "-auto-approve"];
        self.terraform(transition, &args).await?;
        let shown = self.terraform(transition, &["show", "-json"]).await?;
        read(&shown).map_err(|source| RenderError::Shown {
            module: self.module.clone(),
            source,
        })
    }
}

/// `terraform show -json` (<https://developer.hashicorp.com/terraform/internals/json-format#values-representation>).
#[derive(Deserialize)]
struct Shown {
    values: Values,
}

#[derive(Deserialize)]
struct Values {
    root_module: Module,
}

#[derive(Deserialize, Default)]
struct Module {
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    child_modules: Vec<Module>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "type")]
    kind: String,
    values: Value,
}

#[derive(Deserialize)]
struct ScriptValues {
    display_name: String,
    script: String,
    #[serde(default)]
    run_on_start: Option<bool>,
    #[serde(default)]
    run_on_stop: Option<bool>,
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    log_path: Option<String>,
}

#[derive(Deserialize)]
struct EnvValues {
    name: String,
    value: Option<String>,
}

#[derive(Deserialize)]
struct AgentValues {
    token: String,
    #[serde(default)]
    dir: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
}

impl Module {
    fn every_resource(self) -> Vec<Resource> {
        let mut all = self.resources;
        for child in self.child_modules {
            all.extend(child.every_resource());
        }
        all
    }
}

fn read(shown: &str) -> Result<Rendered, serde_json::Error> {
    let shown: Shown = serde_json::from_str(shown)?;
    let mut rendered = Rendered {
        scripts: Vec::new(),
        env: BTreeMap::new(),
        token: String::new(),
        directory: None,
    };
    for resource in shown.values.root_module.every_resource() {
        match resource.kind.as_str() {
            "coder_script" => {
                let script: ScriptValues = serde_json::from_value(resource.values)?;
                rendered.scripts.push(Script {
                    display_name: script.display_name,
                    script: script.script,
                    run_on_start: script.run_on_start.unwrap_or(false),
                    run_on_stop: script.run_on_stop.unwrap_or(false),
                    timeout: script.timeout.unwrap_or(0),
                    log_path: script.log_path,
                });
            }
            "coder_env" => {
                let env: EnvValues = serde_json::from_value(resource.values)?;
                if let Some(value) = env.value {
                    rendered.env.insert(env.name, value);
                }
            }
            "coder_agent" => {
                let agent: AgentValues = serde_json::from_value(resource.values)?;
                rendered.token = agent.token;
                rendered.directory = agent.dir.filter(|dir| !dir.is_empty());
                rendered.env.extend(agent.env.unwrap_or_default());
            }
            _ => {}
        }
    }
    Ok(rendered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_scripts_and_environment_of_nested_modules() {
        let shown = json!({"values": {"root_module": {
            "resources": [{"type": "coder_agent", "values": {"token": "t", "dir": "", "env": {"A": "1"}}}],
            "child_modules": [{"child_modules": [{"resources": [
                {"type": "coder_script", "values": {"display_name": "s", "script": "echo", "run_on_start": true, "run_on_stop": null, "timeout": 0, "log_path": null}},
                {"type": "coder_env", "values": {"name": "B", "value": "2"}},
                {"type": "coder_app", "values": {"slug": "x"}}
            ]}]}]
        }}});
        let rendered = read(&shown.to_string()).expect("it is what Terraform shows");
        assert_eq!(rendered.scripts.len(), 1);
        assert!(rendered.scripts[0].run_on_start && !rendered.scripts[0].run_on_stop);
        assert_eq!(
            rendered.env.into_iter().collect::<Vec<_>>(),
            [
                ("A".to_owned(), "1".to_owned()),
                ("B".to_owned(), "2".to_owned())
            ]
        );
        assert_eq!(rendered.directory, None);
    }
}
