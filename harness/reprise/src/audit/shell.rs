//! Reads a script with a shell's grammar: which files it writes, and where its own data goes.

use std::collections::BTreeMap;

use reprise_model::{AuditFinding, Need};
use tree_sitter::{Node, Parser};

use super::files::Script;

/// Commands that write every path they are given.
const WRITE_ALL: [&str; 5] = ["mkdir", "tee", "touch", "truncate", "install"];

/// Commands that write the last path they are given.
const WRITE_LAST: [&str; 4] = ["cp", "ln", "mv", "rsync"];

/// Options whose value a command writes.
const WRITE_OPTIONS: [(&str, &str); 3] = [("curl", "-o"), ("curl", "--output"), ("wget", "-O")];

const SCRIPT_DATA: &str = "CODER_SCRIPT_DATA_DIR";

/// What the script does with places of interest.
pub(super) fn read(script: &Script) -> Vec<AuditFinding> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .expect("the grammar is of a version that the parser reads");
    let Some(tree) = parser.parse(&script.text, None) else {
        return Vec::new();
    };
    let mut reader = Reader {
        script,
        known: BTreeMap::new(),
        findings: Vec::new(),
    };
    reader.walk(tree.root_node());
    reader.findings
}

struct Reader<'a> {
    script: &'a Script,
    /// What variables were set to, as far as it can be seen.
    known: BTreeMap<String, String>,
    findings: Vec<AuditFinding>,
}

impl Reader<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.script.text.get(node.byte_range()).unwrap_or_default()
    }

    fn walk(&mut self, node: Node<'_>) {
        match node.kind() {
            "variable_assignment" => self.assign(node),
            "command" => self.command(node),
            "file_redirect" => self.redirect(node),
            "test_command" => self.test(node),
            _ => {}
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            self.walk(child);
        }
    }

    fn assign(&mut self, node: Node<'_>) {
        let name = node.child_by_field_name("name").map(|name| self.text(name));
        let value = node
            .child_by_field_name("value")
            .map(|value| self.word(value));
        if let (Some(name), Some(value)) = (name, value) {
            let name = name.to_owned();
            self.known.insert(name, value);
        }
    }

    /// A word with the variables in it replaced, as far as they are known; the home is `~`.
    fn word(&self, node: Node<'_>) -> String {
        let text = self.text(node).replace(['"', '\''], "");
        self.resolve(&text, 4)
    }

    fn resolve(&self, text: &str, depth: usize) -> String {
        let mut resolved = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            resolved.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let (name, default, length) = match after.strip_prefix('{') {
                Some(inner) => {
                    let end = inner.find('}').unwrap_or(inner.len());
                    let (name, default) = match inner[..end].split_once(":-") {
                        Some((name, default)) => (name, Some(default)),
                        None => (&inner[..end], None),
                    };
                    (name, default, (end + 2).min(after.len()))
                }
                None => {
                    let end = after
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                        .unwrap_or(after.len());
                    (&after[..end], None, end)
                }
            };
            match (name, self.known.get(name)) {
                ("HOME", _) => resolved.push('~'),
                (_, Some(value)) if depth > 0 && !value.contains(&format!("${name}")) => {
                    resolved.push_str(&self.resolve(value, depth - 1));
                }
                _ => match default.filter(|default| !default.is_empty()) {
                    Some(default) if depth > 0 => {
                        resolved.push_str(&self.resolve(default, depth - 1));
                    }
                    _ => resolved.push_str(&format!("${{{name}}}")),
                },
            }
            rest = &after[length..];
        }
        resolved.push_str(rest);
        resolved
    }

    fn command(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let called = self.word(name);
        let mut cursor = node.walk();
        let words: Vec<(Node<'_>, String)> = node
            .children_by_field_name("argument", &mut cursor)
            .map(|argument| (argument, self.word(argument)))
            .collect();
        if called.starts_with("/tmp/") {
            self.found(name, &called, "runs");
        }
        if called == "source" || called == "." {
            if let Some((node, path)) = words.first() {
                self.found(*node, path, "reads as its own");
            }
            return;
        }
        if called == "test" || called == "[" {
            for (node, word) in &words {
                self.tested(*node, word);
            }
        }
        let program = called.rsplit('/').next().unwrap_or_default();
        let mut paths = words.iter().filter(|(_, word)| !word.starts_with('-'));
        if WRITE_ALL.contains(&program) {
            for (node, path) in paths.by_ref() {
                self.found(*node, path, "writes");
            }
        } else if WRITE_LAST.contains(&program)
            && let Some((node, path)) = paths.next_back()
        {
            self.found(*node, path, "writes");
        }
        for pair in words.windows(2) {
            let option = (program, pair[0].1.as_str());
            if WRITE_OPTIONS.contains(&option) {
                self.found(pair[1].0, &pair[1].1, "writes");
            }
        }
    }

    fn redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let writes = node
            .children(&mut cursor)
            .any(|child| !child.is_named() && child.kind().contains('>'));
        if let Some(target) = node.child_by_field_name("destination").filter(|_| writes) {
            let path = self.word(target);
            self.found(target, &path, "writes");
        }
    }

    fn test(&mut self, node: Node<'_>) {
        let text = self.text(node).to_owned();
        if text.contains(SCRIPT_DATA) {
            let path = self.resolve(&text, 4);
            self.tested(node, &path);
        }
    }

    /// What a script looks for it expects to find again.
    fn tested(&mut self, node: Node<'_>, path: &str) {
        if path.contains(SCRIPT_DATA) {
            self.add(
                node,
                Need::Bug,
                SCRIPT_DATA,
                "looks for what an earlier start kept there: it is a new directory at each start",
            );
        }
    }

    fn found(&mut self, node: Node<'_>, path: &str, does: &str) {
        if path.contains(SCRIPT_DATA) {
            let what = "writes to it: what is there is new at each start, and left behind";
            self.add(node, Need::Ephemeral, SCRIPT_DATA, what);
        } else if let Some(name) = path.strip_prefix("/tmp/") {
            let drawn = name.contains('$') || name.contains("XXX") || name.contains("TERRAFORM");
            if drawn || name.is_empty() {
                return;
            }
            let what = format!("{does} a file of a fixed name that any other module may write");
            self.add(node, Need::Bug, path, &what);
        } else if path.starts_with("~/.coder-modules/") {
            self.add(
                node,
                Need::Persistence,
                &below_home(path),
                "follows the convention",
            );
        } else if path.starts_with("~/") && does == "writes" {
            let what = "keeps data in a directory of its own choosing";
            self.add(node, Need::Persistence, &below_home(path), what);
        }
    }

    fn add(&mut self, node: Node<'_>, need: Need, path: &str, what: &str) {
        self.findings.push(AuditFinding {
            need,
            file: self.script.file.clone(),
            line: Some(self.script.before + node.start_position().row + 1),
            path: path.to_owned(),
            what: what.to_owned(),
        });
    }
}

/// The directory directly below the home; below the directory for modules' data, the module's.
fn below_home(path: &str) -> String {
    let depth = if path.starts_with("~/.coder-modules/") || path.starts_with("~/.local/") {
        4
    } else {
        2
    };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<(Need, usize, String)> {
        read(&Script {
            file: "x.sh".to_owned(),
            before: 10,
            text: text.to_owned(),
        })
        .into_iter()
        .map(|finding| (finding.need, finding.line.unwrap_or(0), finding.path))
        .collect()
    }

    #[test]
    fn fixed_names_in_tmp_are_bugs_and_drawn_ones_are_not() {
        let found = findings(
            "#!/bin/bash\necho hi > /tmp/main.sh\nx=$(mktemp)\necho hi > \"$x\"\necho > /tmp/a.$$\nsource /tmp/lib.sh\n/tmp/main.sh\n",
        );
        assert_eq!(
            found,
            [
                (Need::Bug, 12, "/tmp/main.sh".to_owned()),
                (Need::Bug, 16, "/tmp/lib.sh".to_owned()),
                (Need::Bug, 17, "/tmp/main.sh".to_owned()),
            ]
        );
    }

    #[test]
    fn a_home_directory_is_followed_through_variables() {
        let found = findings(
            "module_path=\"$HOME/.goose-module\"\nmkdir -p \"$module_path/scripts\"\necho x > \"${module_path}/a\"\nmkdir -p ~/.coder-modules/ns/name/sub\n",
        );
        assert_eq!(
            found[0],
            (Need::Persistence, 12, "~/.goose-module".to_owned())
        );
        assert_eq!(
            found[1],
            (Need::Persistence, 13, "~/.goose-module".to_owned())
        );
        assert_eq!(
            found[2],
            (Need::Persistence, 14, "~/.coder-modules/ns/name".to_owned())
        );
    }

    #[test]
    fn a_cache_in_the_scripts_directory_is_a_bug_where_it_is_looked_for() {
        let found = findings(
            "if [ -f \"$CODER_SCRIPT_DATA_DIR/cache\" ]; then exit; fi\necho x > \"$CODER_SCRIPT_DATA_DIR/cache\"\n",
        );
        assert_eq!(found[0].0, Need::Bug);
        assert_eq!(found.last().map(|found| found.0), Some(Need::Ephemeral));
    }

    proptest::proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*", more in "[$\\{\\}\"'a-z/ >~]*") {
            let _ = findings(&format!("{text}\n{more}"));
        }
    }
}
