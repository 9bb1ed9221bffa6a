//! Where modules come from: released tags of a git repository, a checkout's working tree, or the registry that comes with this
//! program.

use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};
use reprise_engine::Progress;
use reprise_model::ModuleRef;
use semver::Version;
use thiserror::Error;
use tokio::process::Command;

use crate::tools::{Cache, CommandError, run};

static BUILTIN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../tests/registry");

/// Why a module is not to be had.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The registry cannot be fetched.
    #[error(
        "the module registry {url} could not be fetched: {source} (--registry or REPRISE_REGISTRY names another: a checkout, a git URL or a bundle)"
    )]
    Fetch {
        /// The registry.
        url: String,
        /// What git said.
        source: CommandError,
    },
    /// No such release.
    #[error("{registry} has no {module}{hint}")]
    NoSuchRelease {
        /// The registry.
        registry: String,
        /// The module.
        module: ModuleRef,
        /// What it has.
        hint: String,
    },
    /// No such module in the working tree.
    #[error("{} has no module {module}: {} is not there", registry.display(), path.display())]
    NotInTree {
        /// The registry.
        registry: PathBuf,
        /// The module.
        module: ModuleRef,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] CommandError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A registry of modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A checkout: the module measured is the working tree's, uncommitted changes included; others come from its tags.
    Checkout(PathBuf),
    /// A repository without a working tree, in the cache.
    Repository {
        /// Where it was fetched from.
        url: String,
        /// Where it is.
        path: PathBuf,
    },
    /// The registry that comes with this program, unpacked.
    Builtin(PathBuf),
}

impl Source {
    /// Opens the registry that `place` names: a checkout's directory, or a git URL or bundle, which is fetched into the cache.
    ///
    /// # Errors
    /// If it cannot be fetched.
    pub async fn open(
        place: &str,
        cache: &Cache,
        progress: Progress<'_>,
    ) -> Result<Self, SourceError> {
        let dir = Path::new(place);
        if dir.join("registry").is_dir() {
            let path = dir.canonicalize().map_err(|source| SourceError::Io {
                path: dir.to_owned(),
                source,
            })?;
            return Ok(Self::Checkout(path));
        }
        let name: String = place
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let path = cache.entry(&format!("registry/{}", name.trim_matches('-')));
        progress(&format!("fetching the module registry {place}"));
        let fetch = |source| SourceError::Fetch {
            url: place.to_owned(),
            source,
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|source| SourceError::Io {
                path: parent.to_owned(),
                source,
            })?;
        }
        // Two fetches at once would take each other's lock files for those of a crash.
        let lock = path.with_extension("lock");
        let held = tokio::task::spawn_blocking({
            let lock = lock.clone();
            move || -> io::Result<std::fs::File> {
                let file = std::fs::File::create(lock)?;
                file.lock()?;
                Ok(file)
            }
        });
        let _held = held
            .await
            .expect("locking does not panic")
            .map_err(|source| SourceError::Io { path: lock, source })?;
        run(Command::new("git")
            .args(["init", "--quiet", "--bare"])
            .arg(&path))
        .await
        .map_err(fetch)?;
        run(Command::new("git")
            .arg("-C")
            .arg(&path)
            .args(["fetch", "--quiet", "--force", place])
            .args(["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"])
            .env("GIT_TERMINAL_PROMPT", "0"))
        .await
        .map_err(fetch)?;
        Ok(Self::Repository {
            url: place.to_owned(),
            path,
        })
    }

    /// The registry that comes with this program, unpacked into `dir`.
    ///
    /// # Errors
    /// If it cannot be written there.
    pub fn builtin(dir: PathBuf) -> Result<Self, SourceError> {
        let unpack = || {
            std::fs::create_dir_all(&dir)?;
            BUILTIN.extract(&dir)
        };
        unpack().map_err(|source| SourceError::Io {
            path: dir.clone(),
            source,
        })?;
        Ok(Self::Builtin(dir))
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Checkout(path) => format!("the checkout {}", path.display()),
            Self::Repository { url, .. } => url.clone(),
            Self::Builtin(_) => "the registry that comes with reprise".to_owned(),
        }
    }

    /// Whether a module named without a version means the working tree's.
    #[must_use]
    pub fn has_tree(&self) -> bool {
        !matches!(self, Self::Repository { .. })
    }

    /// The directory of a module in the working tree.
    ///
    /// # Errors
    /// If there is no working tree, or no such module in it.
    pub fn tree(&self, module: &ModuleRef) -> Result<PathBuf, SourceError> {
        let root = match self {
            Self::Checkout(path) | Self::Builtin(path) | Self::Repository { path, .. } => path,
        };
        let path = root
            .join("registry")
            .join(&module.namespace)
            .join("modules")
            .join(&module.name);
        if path.join("main.tf").is_file() {
            Ok(path)
        } else {
            Err(SourceError::NotInTree {
                registry: root.clone(),
                module: module.clone(),
                path,
            })
        }
    }

    fn git(&self) -> Option<&Path> {
        match self {
            Self::Checkout(path) | Self::Repository { path, .. } => Some(path),
            Self::Builtin(_) => None,
        }
    }

    /// The released versions of a module, newest first.
    ///
    /// # Errors
    /// If git fails.
    pub async fn versions(&self, namespace: &str, name: &str) -> Result<Vec<Version>, SourceError> {
        let Some(repository) = self.git() else {
            return Ok(Vec::new());
        };
        let prefix = format!("release/{namespace}/{name}/v");
        let tags = run(Command::new("git").arg("-C").arg(repository).args([
            "tag",
            "--list",
            &format!("{prefix}*"),
        ]))
        .await?;
        let mut versions: Vec<Version> = tags
            .lines()
            .filter_map(|tag| Version::parse(tag.strip_prefix(&prefix)?).ok())
            .collect();
        versions.sort_by(|one, other| other.cmp(one));
        Ok(versions)
    }

    /// A released module as a compressed tar archive.
    ///
    /// # Errors
    /// If there is no such release; what there is stands in the error.
    pub async fn archive(&self, module: &ModuleRef) -> Result<Vec<u8>, SourceError> {
        let versions = self.versions(&module.namespace, &module.name).await?;
        let released = module
            .version
            .as_ref()
            .filter(|version| versions.contains(version));
        let (Some(version), Some(repository)) = (released, self.git()) else {
            return Err(self.no_such_release(module, &versions));
        };
        let ModuleRef {
            namespace, name, ..
        } = module;
        let tree =
            format!("release/{namespace}/{name}/v{version}:registry/{namespace}/modules/{name}");
        let output = Command::new("git")
            .arg("-C")
            .arg(repository)
            .args(["archive", "--format=tar.gz", &tree])
            .output()
            .await
            .map_err(|source| SourceError::Io {
                path: "git".into(),
                source,
            })?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(self.no_such_release(module, &versions))
        }
    }

    fn no_such_release(&self, module: &ModuleRef, versions: &[Version]) -> SourceError {
        let hint = match versions {
            [] => ": it has no release of that module at all (in a checkout, `git fetch --tags` may bring them)".to_owned(),
            [newest, ..] => {
                let shown: Vec<String> =
                    versions.iter().take(8).map(ToString::to_string).collect();
                format!("; it has {}, the newest is {newest}", shown.join(", "))
            }
        };
        SourceError::NoSuchRelease {
            registry: self.describe(),
            module: module.clone(),
            hint,
        }
    }
}

/// A directory of the working tree as a compressed tar archive, without what git ignores.
pub(super) fn pack(dir: &Path) -> Result<Vec<u8>, SourceError> {
    let failed = |source| SourceError::Io {
        path: dir.to_owned(),
        source,
    };
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for entry in ignore::WalkBuilder::new(dir).hidden(false).build() {
        let entry = entry.map_err(|error| failed(io::Error::other(error)))?;
        let path = entry.path();
        let relative = path.strip_prefix(dir).unwrap_or(path);
        if path.is_file() && !relative.starts_with(".git") && !relative.starts_with(".terraform") {
            tar.append_path_with_name(path, relative).map_err(failed)?;
        }
    }
    tar.into_inner().and_then(GzEncoder::finish).map_err(failed)
}
