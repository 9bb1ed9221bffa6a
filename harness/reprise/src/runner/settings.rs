//! What an agent and its module are told of the workspace: placeholders, variables, environment.

use std::collections::BTreeMap;

use reprise_model::Subject;
use serde_json::Value;

use crate::scenario::{AgentProfile, Conditions, ModuleProfile, Placeholders};
use crate::workspace::{HOME, Workspace};

/// Where the agent works: what the scenario says, and else what templates usually say.
pub(super) fn directory(conditions: &Conditions) -> String {
    match &conditions.directory {
        Some(directory) => directory.replace("${home}", HOME),
        None => format!("{HOME}/project"),
    }
}

pub(super) fn placeholders(workspace: &Workspace, conditions: &Conditions) -> Placeholders {
    Placeholders::default()
        .with("gateway", workspace.gateway_address().to_string())
        .with("home", HOME)
        .with("directory", directory(conditions))
}

/// A module's variables, with the gateway's address in their strings where they ask for it.
pub(super) fn variables(
    module: &ModuleProfile,
    conditions: &Conditions,
    gateway: &str,
) -> BTreeMap<String, Value> {
    fn fill(value: &Value, known: &[(&str, &str)]) -> Value {
        match value {
            // Other dollars are Terraform's or the module's own.
            Value::String(text) => known
                .iter()
                .fold(text.clone(), |text, (name, value)| {
                    text.replace(name, value)
                })
                .into(),
            Value::Array(values) => values.iter().map(|value| fill(value, known)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), fill(value, known)))
                .collect(),
            other => other.clone(),
        }
    }
    let directory = directory(conditions);
    let known = [
        ("${gateway}", gateway),
        ("${home}", HOME),
        ("${directory}", directory.as_str()),
    ];
    let mut variables: BTreeMap<String, Value> = module
        .variables
        .iter()
        .chain(&conditions.settings)
        .map(|(name, value)| (name.clone(), fill(value, &known)))
        .collect();
    if let (Some(name), Some(_)) = (&module.directory, &conditions.directory) {
        variables.insert(name.clone(), directory.into());
    }
    variables
}

/// The agent's environment. A stand-in is told where its model is in words of its own, beside those of the agent it plays.
pub(super) fn environment(profile: &AgentProfile, subject: Subject) -> BTreeMap<String, String> {
    let mut env = profile.env.clone();
    if subject == Subject::StandIn {
        env.insert(
            "STAND_IN_GATEWAY".to_owned(),
            "http://${gateway}".to_owned(),
        );
    }
    env
}
