//! Which module is measured, and from which registry.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use reprise_engine::Progress;
use reprise_model::ModuleRef;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::agent::Installed;
use crate::module::{self, REGISTRY_REPOSITORY, Source, SourceError};
use crate::scenario::{ModuleProfile, Registry};
use crate::tools::Cache;

/// Why a module cannot be measured.
#[derive(Debug, Error)]
pub enum PlanError {
    /// It is not to be had.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// Everything a cell needs.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) installed: Installed,
    /// What the first start has instead, if it has something else.
    pub(super) before: Option<Installed>,
    pub(super) module: Option<Chosen>,
}

/// A module that can be measured.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) source: Source,
    pub(super) module: ModuleRef,
    pub(super) variables: BTreeSet<String>,
}

/// What the user said of modules.
#[derive(Debug, Default)]
pub struct ModuleChoice {
    /// The registry: a checkout, a git URL, a bundle.
    pub registry: Option<String>,
    /// The module, instead of the profile's.
    pub module: Option<ModuleRef>,
    /// Where the built-in registry is unpacked.
    pub builtin_dir: PathBuf,
    /// Variables of the module, beside the profile's or in their place.
    pub settings: BTreeMap<String, Value>,
    opened: OnceCell<Source>,
}

impl ModuleChoice {
    /// A choice; the built-in registry is unpacked into `builtin_dir` when it is needed.
    #[must_use]
    pub fn new(
        registry: Option<String>,
        module: Option<ModuleRef>,
        settings: BTreeMap<String, Value>,
        builtin_dir: PathBuf,
    ) -> Self {
        Self {
            settings,
            registry,
            module,
            builtin_dir,
            opened: OnceCell::new(),
        }
    }

    /// The source and the module to measure. In a checkout, a module named without a version is the working tree's; elsewhere
    /// it is the release that the profile names, or the newest.
    pub(super) async fn choose(
        &self,
        profile: &ModuleProfile,
        cache: &Cache,
        progress: Progress<'_>,
    ) -> Result<Chosen, PlanError> {
        let builtin = profile.registry == Registry::Builtin
            && (self.registry.is_none() || self.module.is_none());
        if builtin {
            let module = self
                .module
                .clone()
                .unwrap_or_else(|| profile.source.clone());
            let source = Source::builtin(self.builtin_dir.clone())?;
            let variables = module::variables(&source.texts(&module).await?);
            return Ok(Chosen {
                source,
                module,
                variables,
            });
        }
        let place = self.registry.as_deref().unwrap_or(REGISTRY_REPOSITORY);
        let source = self
            .opened
            .get_or_try_init(|| Source::open(place, cache, progress))
            .await?
            .clone();
        let mut module = self.module.clone().unwrap_or_else(|| ModuleRef {
            version: None,
            ..profile.source.clone()
        });
        if module.version.is_none() && !source.has_tree() {
            let same =
                module.namespace == profile.source.namespace && module.name == profile.source.name;
            let newest = || async {
                let versions = source.versions(&module.namespace, &module.name).await?;
                Ok::<_, SourceError>(versions.into_iter().next())
            };
            module.version = match &profile.source.version {
                Some(version) if same => Some(version.clone()),
                _ => newest().await?,
            };
        }
        // Now, and not in each cell: what is missing is missing for all of them.
        let variables = module::variables(&source.texts(&module).await?);
        Ok(Chosen {
            source,
            module,
            variables,
        })
    }
}
