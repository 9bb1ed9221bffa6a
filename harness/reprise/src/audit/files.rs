//! A module's scripts: its shell files, and the scripts that its Terraform files hold.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use hcl_edit::Span;
use hcl_edit::structure::Body;
use hcl_edit::template::HeredocTemplate;
use hcl_edit::visit::{Visit, visit_heredoc_template};
use reprise_model::ModuleRef;
use thiserror::Error;

use crate::module::{Source, SourceError};
use crate::tools::run;

/// Why a module could not be read.
#[derive(Debug, Error)]
pub enum AuditError {
    /// It is not to be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file of it.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

/// A script of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// The file it stands in, below the module.
    pub(super) file: String,
    /// How many lines of that file come before it.
    pub(super) before: usize,
    pub(super) text: String,
}

/// Every module of a registry: those of its working tree, or the newest release of each.
///
/// # Errors
/// If the registry cannot be read.
pub async fn modules_of(source: &Source) -> Result<Vec<ModuleRef>, AuditError> {
    let mut modules = Vec::new();
    match source {
        Source::Checkout(root) | Source::Builtin(root) => {
            for namespace in names(&root.join("registry"))? {
                let dir = root.join("registry").join(&namespace).join("modules");
                for name in names(&dir)? {
                    if dir.join(&name).join("main.tf").is_file() {
                        modules.push(ModuleRef {
                            namespace: namespace.clone(),
                            name,
                            version: None,
                        });
                    }
                }
            }
        }
        Source::Repository { path, .. } => {
            let tags = run(tokio::process::Command::new("git")
                .arg("-C")
                .arg(path)
                .args(["tag", "--list", "release/*"]))
            .await
            .map_err(SourceError::from)?;
            let mut named: Vec<(String, String)> = tags
                .lines()
                .filter_map(|tag| {
                    let (namespace, name) = tag.strip_prefix("release/")?.split_once('/')?;
                    Some((namespace.to_owned(), name.rsplit_once("/v")?.0.to_owned()))
                })
                .collect();
            named.sort();
            named.dedup();
            for (namespace, name) in named {
                let version = source.versions(&namespace, &name).await?.into_iter().next();
                modules.push(ModuleRef {
                    namespace,
                    name,
                    version,
                });
            }
        }
    }
    Ok(modules)
}

fn names(dir: &Path) -> Result<Vec<String>, AuditError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| AuditError::Io {
            path: dir.display().to_string(),
            source,
        })?,
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The scripts of a module.
pub(super) async fn scripts(
    source: &Source,
    module: &ModuleRef,
) -> Result<Vec<Script>, AuditError> {
    let texts = match &module.version {
        Some(_) => of_archive(&source.archive(module).await?)?,
        None => of_tree(&source.tree(module)?)?,
    };
    Ok(texts
        .into_iter()
        .filter(|(file, _)| !is_test(file))
        .flat_map(|(file, text)| in_file(file, text))
        .collect())
}

/// Tests play the agent; what they write nobody keeps.
fn is_test(file: &str) -> bool {
    file.starts_with("testdata/") || file.contains("/testdata/") || file.contains("test.")
}

fn in_file(file: String, text: String) -> Vec<Script> {
    let end = file.rsplit('.').next().unwrap_or_default();
    match end {
        "sh" | "bash" | "tftpl" => vec![Script {
            file,
            before: 0,
            text,
        }],
        "tf" => in_terraform(&file, &text),
        _ => Vec::new(),
    }
}

/// The heredocs of a Terraform file that are scripts: their first line says so.
fn in_terraform(file: &str, text: &str) -> Vec<Script> {
    struct Heredocs<'a> {
        file: &'a str,
        text: &'a str,
        found: Vec<Script>,
    }
    impl Visit for Heredocs<'_> {
        fn visit_heredoc_template(&mut self, node: &HeredocTemplate) {
            if let Some(span) = node.template.span().or_else(|| node.span()) {
                let inner = self.text.get(span.clone()).unwrap_or_default();
                if inner.trim_start().starts_with("#!") || inner.contains("\n#!") {
                    self.found.push(Script {
                        file: self.file.to_owned(),
                        before: self.text[..span.start].matches('\n').count(),
                        text: without_interpolation(inner),
                    });
                }
            }
            visit_heredoc_template(self, node);
        }
    }
    // A file that Terraform would refuse, too, has no script.
    let Ok(body) = text.parse::<Body>() else {
        return Vec::new();
    };
    let mut heredocs = Heredocs {
        file,
        text,
        found: Vec::new(),
    };
    heredocs.visit_body(&body);
    heredocs.found
}

/// Terraform's `${…}` would be the shell's, and `$${…}` is: each becomes what the shell sees.
fn without_interpolation(text: &str) -> String {
    let mut seen = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let escaped = rest[..at].ends_with('$');
        if escaped {
            seen.push_str(&rest[..at - 1]);
            seen.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        seen.push_str(&rest[..at]);
        let mut depth = 0usize;
        let mut length = rest.len() - at;
        for (place, c) in rest[at..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        length = place + 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        // A word that no path of interest holds; line breaks stay, so that lines can be counted.
        seen.push_str("TERRAFORM");
        seen.extend(rest[at..at + length].chars().filter(|c| *c == '\n'));
        rest = &rest[at + length..];
    }
    seen.push_str(rest);
    seen
}

fn of_tree(dir: &Path) -> Result<BTreeMap<String, String>, AuditError> {
    let mut texts = BTreeMap::new();
    for entry in ignore::WalkBuilder::new(dir).hidden(false).build() {
        let failed = |error: ignore::Error| AuditError::Io {
            path: dir.display().to_string(),
            source: io::Error::other(error),
        };
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let below = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        if path.is_file()
            && let Ok(text) = fs::read_to_string(path)
        {
            texts.insert(below, text);
        }
    }
    Ok(texts)
}

fn of_archive(archive: &[u8]) -> Result<BTreeMap<String, String>, AuditError> {
    let failed = |source| AuditError::Io {
        path: "the release's archive".to_owned(),
        source,
    };
    let mut texts = BTreeMap::new();
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let path = entry.path().map_err(failed)?.display().to_string();
        let mut text = String::new();
        if entry.header().entry_type().is_file() && entry.read_to_string(&mut text).is_ok() {
            texts.insert(path, text);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_in_a_terraform_file_keeps_its_lines() {
        let text = "resource \"coder_script\" \"a\" {\n  script = <<-EOT\n    #!/bin/bash\n    echo ${var.x} > /tmp/a\n    echo $${HOME}\n    EOT\n  run_on_start = true\n}\nlocals {\n  other = <<-EOT\n    words\n  EOT\n}\n";
        let scripts = in_terraform("main.tf", text);
        assert_eq!(scripts.len(), 1);
        assert_eq!(scripts[0].before, 2);
        assert!(scripts[0].text.contains("echo TERRAFORM > /tmp/a"));
        assert!(scripts[0].text.contains("echo ${HOME}"));
    }
}
