//! Audits: what modules do with places that a restart treats differently, and whether a template's volumes survive.

mod files;
mod seen;
mod shell;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use reprise_model::{Audit, AuditFinding, Collision, ModuleAudit, ModuleRef, Need};

pub use files::modules_of;
pub use seen::add_seen;
pub use template::{TemplateError, audit as audit_template};

use crate::module::Source;

/// Audits modules of a registry, each from its scripts.
pub async fn audit(source: &Source, modules: &[ModuleRef]) -> Audit {
    let mut audit = Audit::default();
    let mut written: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for module in modules {
        let scripts = match files::scripts(source, module).await {
            Ok(scripts) => scripts,
            Err(error) => {
                audit.unread.push(format!("{module}: {error}"));
                continue;
            }
        };
        let mut findings: Vec<AuditFinding> = scripts.iter().flat_map(shell::read).collect();
        findings.sort_by(|one, other| other.need.cmp(&one.need).then_with(|| one.cmp(other)));
        // The first place where a path is used tells enough.
        let mut told = BTreeSet::new();
        findings.retain(|finding| told.insert((finding.path.clone(), finding.need)));
        for finding in &findings {
            if finding.path.starts_with("/tmp/") {
                let modules = written.entry(finding.path.clone()).or_default();
                modules.insert(audit.modules.len());
            }
        }
        audit.modules.push(ModuleAudit {
            module: module.clone(),
            scripts: scripts.len(),
            findings,
        });
    }
    audit.collisions = written
        .into_iter()
        .filter(|(_, modules)| modules.len() > 1)
        .map(|(path, modules)| Collision {
            path,
            modules: modules
                .into_iter()
                .map(|place| audit.modules[place].module.clone())
                .collect(),
        })
        .collect();
    audit
}

/// Whether something is wrong with any module.
#[must_use]
pub fn has_bugs(audit: &Audit) -> bool {
    audit
        .modules
        .iter()
        .any(|module| module.need() == Need::Bug)
}
