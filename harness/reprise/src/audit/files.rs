//! A module's scripts: its shell files, and the scripts that its Terraform files hold.

use std::fs;
use std::io;
use std::path::Path;

use hcl_edit::Span;
use hcl_edit::structure::Body;
use hcl_edit::template::HeredocTemplate;
use hcl_edit::visit::{Visit, visit_heredoc_template};
use reprise_model::ModuleRef;

use crate::module::{Source, SourceError};
use crate::tools::run;

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
pub async fn modules_of(source: &Source) -> Result<Vec<ModuleRef>, SourceError> {
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
            .await?;
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

fn names(dir: &Path) -> Result<Vec<String>, SourceError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| SourceError::Io {
            path: dir.to_owned(),
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
) -> Result<Vec<Script>, SourceError> {
    let texts = source.texts(module).await?;
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
