//! Whether a template's volumes survive what happens to their workspace, by `terraform plan`.
//!
//! Nothing is applied. A first plan says what each volume would be; a state is written that says it is so; and then a plan is made
//! for each event, with the same environment that Coder gives its provider.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use reprise_model::{VolumeAudit, WorkspaceId};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use uuid::Uuid;

use crate::tools::{CommandError, Provider, run, terraform_in};

/// Resources that hold a workspace's data, each with an argument that cannot be changed in place, as JSON. The sources are
/// their providers' pages on <https://registry.terraform.io>.
const VOLUMES: &[(&str, &str)] = &[
    (
        "aws_ebs_volume",
        r#"{"availability_zone": "reprise-other"}"#,
    ),
    ("azurerm_managed_disk", r#"{"name": "reprise-other"}"#),
    ("digitalocean_volume", r#"{"name": "reprise-other"}"#),
    ("docker_volume", r#"{"name": "reprise-other"}"#),
    ("google_compute_disk", r#"{"name": "reprise-other"}"#),
    ("hcloud_volume", r#"{"location": "reprise-other"}"#),
    (
        "kubernetes_persistent_volume_claim",
        r#"{"metadata": {"name": "reprise-other"}}"#,
    ),
    (
        "kubernetes_persistent_volume_claim_v1",
        r#"{"metadata": {"name": "reprise-other"}}"#,
    ),
    ("linode_volume", r#"{"region": "reprise-other"}"#),
    // Terraform's own: it holds nothing, and is a volume only where it is said to stand for one.
    (STANDING_IN, r#"{"triggers_replace": "reprise-other"}"#),
];

/// What is a volume only where somebody says so.
const STANDING_IN: &str = "terraform_data";

/// Why a template could not be judged.
#[derive(Debug, Error)]
pub enum TemplateError {
    /// A file.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Terraform refused.
    #[error("{what}:\n{source}")]
    Terraform {
        /// What was tried.
        what: String,
        /// What it said.
        source: CommandError,
    },
    /// What Terraform printed is not what was expected.
    #[error("cannot understand what Terraform shows: {0}")]
    Shown(#[from] serde_json::Error),
    /// There is no volume.
    #[error(
        "{} has no volume that is known as one ({}): a workspace of it keeps nothing, or keeps it otherwise",
        path.display(),
        known()
    )]
    NoVolume {
        /// The template.
        path: PathBuf,
    },
}

fn known() -> String {
    VOLUMES
        .iter()
        .map(|(kind, _)| *kind)
        .collect::<Vec<_>>()
        .join(", ")
}

/// What is done to a workspace.
struct Event {
    name: &'static str,
    variables: Vec<(&'static str, String)>,
    /// Whether the template's own words about its volumes change, too.
    rewritten: bool,
}

/// What a state must know of a resource.
struct Schema {
    version: u64,
    /// Attributes that can be of any type.
    dynamic: Vec<String>,
}

struct Bench {
    terraform: PathBuf,
    dir: PathBuf,
    workspace: BTreeMap<&'static str, String>,
}

#[derive(Deserialize)]
struct Plan {
    #[serde(default)]
    resource_changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    address: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    index: Option<Value>,
    #[serde(default)]
    module_address: Option<String>,
    provider_name: String,
    change: Actions,
}

#[derive(Deserialize)]
struct Actions {
    actions: Vec<String>,
    #[serde(default)]
    after: Value,
}

impl Change {
    /// What Terraform must be told to make it anew.
    fn otherwise(&self) -> Option<&'static str> {
        VOLUMES
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map(|(_, otherwise)| *otherwise)
    }
}

/// Judges the volumes of the template in `template`: those of the addresses in `named`, or all of known kinds. `dir` is an empty
/// directory to work in.
///
/// # Errors
/// If Terraform refuses the template, or it has no volume.
pub async fn audit(
    template: &Path,
    named: &[String],
    terraform: &Path,
    provider: &Provider,
    dir: &Path,
) -> Result<Vec<VolumeAudit>, TemplateError> {
    let bench = Bench::open(template, terraform, provider, dir)?;
    bench
        .terraform(
            "`terraform init` refuses the template",
            &[],
            &["init", "-input=false", "-no-color"],
        )
        .await?;
    let first = bench.plan("a new workspace", &[]).await?;
    let volumes: Vec<&Change> = first
        .resource_changes
        .iter()
        .filter(|change| match named {
            [] => change.kind != STANDING_IN && change.otherwise().is_some(),
            some => some.contains(&change.address),
        })
        .filter(|change| change.change.actions == ["create"])
        .collect();
    if volumes.is_empty() {
        return Err(TemplateError::NoVolume {
            path: template.to_owned(),
        });
    }
    let schemas = bench.schemas().await?;
    bench.write("terraform.tfstate", &state(&volumes, &schemas).to_string())?;
    let mut audits: Vec<VolumeAudit> = volumes
        .iter()
        .map(|volume| VolumeAudit {
            address: volume.address.clone(),
            events: Vec::new(),
            ignores_changes: false,
        })
        .collect();
    for event in events() {
        if event.rewritten {
            bench.write("reprise_override.tf.json", &rewritten(&volumes).to_string())?;
        }
        let plan = bench.plan(event.name, &event.variables).await?;
        for audit in &mut audits {
            let actions = plan
                .resource_changes
                .iter()
                .find(|change| change.address == audit.address)
                .map_or_else(
                    || vec!["delete".to_owned()],
                    |change| change.change.actions.clone(),
                );
            if event.rewritten {
                audit.ignores_changes = actions == ["no-op"];
            }
            audit.events.push((event.name.to_owned(), actions));
        }
    }
    bench.remove("reprise_override.tf.json")?;
    bench.remove("terraform.tfstate")?;
    let other = [
        ("CODER_WORKSPACE_ID", Uuid::new_v4().to_string()),
        ("CODER_WORKSPACE_NAME", "another".to_owned()),
    ];
    let plan = bench
        .plan("another workspace of the same owner", &other)
        .await?;
    for (audit, volume) in audits.iter_mut().zip(&volumes) {
        let same = plan.resource_changes.iter().any(|change| {
            change.address == audit.address
                && name_of(&change.change.after).is_some()
                && name_of(&change.change.after) == name_of(&volume.change.after)
        });
        let action = if same { "shared" } else { "its own" };
        let event = "another workspace of the same owner".to_owned();
        audit.events.push((event, vec![action.to_owned()]));
    }
    Ok(audits)
}

/// The name by which the world outside Terraform knows a volume.
fn name_of(after: &Value) -> Option<&Value> {
    [&after["name"], &after["metadata"][0]["name"]]
        .into_iter()
        .find(|name| name.is_string())
}

fn events() -> Vec<Event> {
    let event = |name, variables| Event {
        name,
        variables,
        rewritten: false,
    };
    vec![
        event("restart", vec![]),
        event(
            "stop",
            vec![("CODER_WORKSPACE_TRANSITION", "stop".to_owned())],
        ),
        event(
            "rename",
            vec![("CODER_WORKSPACE_NAME", "renamed".to_owned())],
        ),
        event(
            "owner renamed",
            vec![("CODER_WORKSPACE_OWNER", "renamed".to_owned())],
        ),
        event(
            "template update",
            vec![("CODER_WORKSPACE_TEMPLATE_VERSION", "v2".to_owned())],
        ),
        Event {
            name: "template update that changes the volume",
            variables: vec![("CODER_WORKSPACE_TEMPLATE_VERSION", "v2".to_owned())],
            rewritten: true,
        },
    ]
}

/// A state in which the volumes are as they were planned
/// (<https://developer.hashicorp.com/terraform/internals/json-format> says what a plan holds; the state's own format is that of
/// version 4).
fn state(volumes: &[&Change], schemas: &BTreeMap<String, Schema>) -> Value {
    let mut resources: BTreeMap<(Option<String>, String, String), Value> = BTreeMap::new();
    for volume in volumes {
        let key = (
            volume.module_address.clone(),
            volume.kind.clone(),
            volume.name.clone(),
        );
        let resource = resources.entry(key).or_insert_with(|| {
            let mut resource = json!({
                "mode": "managed", "type": volume.kind, "name": volume.name,
                "provider": format!("provider[\"{}\"]", volume.provider_name),
                "instances": [],
            });
            if let Some(module) = &volume.module_address {
                resource["module"] = json!(module);
            }
            resource
        });
        let mut attributes = volume.change.after.clone();
        // What is known after apply only: any value does, as long as it stays.
        if attributes["id"].is_null() {
            attributes["id"] = json!("reprise");
        }
        let schema = schemas.get(&volume.kind);
        for name in schema.into_iter().flat_map(|schema| &schema.dynamic) {
            let value = attributes[name].take();
            if !value.is_null() {
                attributes[name] = json!({"type": type_of(&value), "value": value});
            }
        }
        let mut instance = json!({
            "schema_version": schema.map_or(0, |schema| schema.version),
            "attributes": attributes, "sensitive_attributes": [],
        });
        if let Some(index) = &volume.index {
            instance["index_key"] = index.clone();
        }
        if let Some(instances) = resource["instances"].as_array_mut() {
            instances.push(instance);
        }
    }
    json!({
        "version": 4, "terraform_version": "1.8.5", "serial": 1,
        "lineage": Uuid::new_v4(), "outputs": {},
        "resources": resources.into_values().collect::<Vec<_>>(), "check_results": null,
    })
}

/// A value's type, as a state writes it beside a value that can be of any.
fn type_of(value: &Value) -> Value {
    match value {
        Value::Null => json!("dynamic"),
        Value::Bool(_) => json!("bool"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        Value::Array(items) => json!(["tuple", items.iter().map(type_of).collect::<Vec<_>>()]),
        Value::Object(fields) => {
            let fields: serde_json::Map<String, Value> = fields
                .iter()
                .map(|(name, value)| (name.clone(), type_of(value)))
                .collect();
            json!(["object", fields])
        }
    }
}

/// The template's volumes, described otherwise (<https://developer.hashicorp.com/terraform/language/files/override>).
fn rewritten(volumes: &[&Change]) -> Value {
    let mut resources = json!({});
    for volume in volumes
        .iter()
        .filter(|volume| volume.module_address.is_none())
    {
        if let Some(otherwise) = volume.otherwise() {
            resources[&volume.kind][&volume.name] =
                serde_json::from_str(otherwise).expect("it is JSON");
        }
    }
    json!({ "resource": resources })
}

impl Bench {
    fn open(
        template: &Path,
        terraform: &Path,
        provider: &Provider,
        dir: &Path,
    ) -> Result<Self, TemplateError> {
        copy(template, dir)?;
        let bench = Self {
            terraform: terraform.to_owned(),
            dir: dir.to_owned(),
            workspace: BTreeMap::from([
                ("CODER_AGENT_URL", "http://127.0.0.1/".to_owned()),
                ("CODER_WORKSPACE_ID", WorkspaceId::draw().to_string()),
                ("CODER_WORKSPACE_NAME", "workspace".to_owned()),
                ("CODER_WORKSPACE_OWNER", "reprise".to_owned()),
                ("CODER_WORKSPACE_OWNER_ID", Uuid::new_v4().to_string()),
                ("CODER_WORKSPACE_TRANSITION", "start".to_owned()),
                ("CODER_WORKSPACE_TEMPLATE_VERSION", "v1".to_owned()),
            ]),
        };
        bench.write("terraformrc", &provider.cli_config())?;
        Ok(bench)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TemplateError> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(|source| TemplateError::Io { path, source })
    }

    fn remove(&self, name: &str) -> Result<(), TemplateError> {
        let path = self.dir.join(name);
        fs::remove_file(&path).map_err(|source| TemplateError::Io { path, source })
    }

    async fn terraform(
        &self,
        what: &str,
        variables: &[(&'static str, String)],
        args: &[&str],
    ) -> Result<String, TemplateError> {
        let mut command = terraform_in(&self.terraform, &self.dir, args);
        command
            .envs(&self.workspace)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        run(&mut command)
            .await
            .map_err(|source| TemplateError::Terraform {
                what: what.to_owned(),
                source,
            })
    }

    async fn plan(
        &self,
        what: &str,
        variables: &[(&'static str, String)],
    ) -> Result<Plan, TemplateError> {
        let what = format!("no plan for {what}");
        let args = [
            "plan",
            "-input=false",
            "-no-color",
            "-refresh=false",
            "-lock=false",
            "-out=plan",
        ];
        self.terraform(&what, variables, &args).await?;
        let shown = self
            .terraform(&what, variables, &["show", "-json", "plan"])
            .await?;
        Ok(serde_json::from_str(&shown)?)
    }

    /// What a state must know of each resource's schema.
    async fn schemas(&self) -> Result<BTreeMap<String, Schema>, TemplateError> {
        let what = "the providers do not show their schemas";
        let shown = self
            .terraform(what, &[], &["providers", "schema", "-json"])
            .await?;
        let shown: Value = serde_json::from_str(&shown)?;
        let mut schemas = BTreeMap::new();
        for provider in shown["provider_schemas"].as_object().into_iter().flatten() {
            for (kind, schema) in provider.1["resource_schemas"]
                .as_object()
                .into_iter()
                .flatten()
            {
                let schema = Schema {
                    version: schema["version"].as_u64().unwrap_or(0),
                    dynamic: schema["block"]["attributes"]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter(|(_, attribute)| attribute["type"] == "dynamic")
                        .map(|(name, _)| name.clone())
                        .collect(),
                };
                schemas.insert(kind.clone(), schema);
            }
        }
        Ok(schemas)
    }
}

/// Copies a template without what earlier uses of Terraform left in it.
fn copy(from: &Path, to: &Path) -> Result<(), TemplateError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| TemplateError::Io { path, source }
    };
    fs::create_dir_all(to).map_err(failed(to))?;
    for entry in fs::read_dir(from).map_err(failed(from))? {
        let entry = entry.map_err(failed(from))?;
        let name = entry.file_name();
        let is_state = name.to_string_lossy().contains(".tfstate");
        if name == ".terraform" || name == ".git" || is_state {
            continue;
        }
        let (source, target) = (entry.path(), to.join(&name));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(failed(&source))?;
        }
    }
    Ok(())
}
