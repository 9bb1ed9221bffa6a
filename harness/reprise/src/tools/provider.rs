//! Coder's Terraform provider: built with Go into a filesystem mirror, or left to Terraform, which downloads its release and
//! checks the signature itself.

use std::path::{Path, PathBuf};

use reprise_engine::Progress;

use super::{Chain, Tools, Tried, go, on_path};

const VERSION: &str = "2.19.0";
const MODULE: &str = "github.com/coder/terraform-provider-coder/v2";

/// How Terraform shall get the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// From this directory
    /// (<https://developer.hashicorp.com/terraform/cli/config/config-file#filesystem_mirror>).
    Mirror {
        /// The mirror's root.
        root: PathBuf,
        /// How it came there.
        from: &'static str,
    },
    /// From its own registry.
    Direct,
}

impl Provider {
    /// The version rendered with.
    pub const VERSION: &'static str = VERSION;

    /// What a CLI configuration says of where providers come from: the mirror has what it has, and Terraform gets the rest from
    /// where it always does.
    #[must_use]
    pub fn cli_config(&self) -> String {
        let Self::Mirror { root, .. } = self else {
            return String::new();
        };
        let ours = format!("{:?}", mirrored(root));
        format!(
            "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n    include = {ours}\n  }}\n  direct {{\n    exclude = {ours}\n  }}\n}}\n",
            root.display()
        )
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Mirror { from, .. } => format!("{VERSION}, {from}"),
            Self::Direct => format!("{VERSION}, to be downloaded by Terraform"),
        }
    }
}

/// The providers that a mirror has: `HOST/NAMESPACE/NAME`.
fn mirrored(root: &Path) -> Vec<String> {
    let mut found: Vec<String> = walkdir::WalkDir::new(root)
        .min_depth(3)
        .max_depth(3)
        .into_iter()
        .filter_map(Result::ok)
        .filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.display().to_string()))
        .collect();
    found.sort();
    found
}

fn platform() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "linux_arm64"
    } else {
        "linux_amd64"
    }
}

pub(super) async fn find(tools: &Tools, progress: Progress<'_>) -> Result<Provider, Tried> {
    let mut chain = Chain::of("Coder's Terraform provider");
    let entry = "terraform-mirror";
    let root = tools.cache.entry(entry);
    let file = |host: &str| {
        format!(
            "{host}/coder/coder/{VERSION}/{}/terraform-provider-coder_v{VERSION}",
            platform()
        )
    };
    // OpenTofu looks for the same provider under its own registry's name.
    let hosts = ["registry.terraform.io", "registry.opentofu.org"];
    if hosts.iter().all(|host| root.join(file(host)).is_file()) {
        let from = "built with Go, from the cache";
        return Ok(Provider::Mirror { root, from });
    }
    chain.says("cache", "not there");
    if !tools.obtain {
        return match on_path("go") {
            Some(_) => Err(chain.broken()),
            None => Ok(Provider::Direct),
        };
    }
    if on_path("go").is_none() {
        return Ok(Provider::Direct);
    }
    progress(&format!(
        "building Coder's Terraform provider {VERSION} with Go"
    ));
    let built = async {
        let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
        let program = workshop.path().join("provider");
        let version = format!("v{VERSION}");
        go::build_release(MODULE, &version, MODULE, workshop.path(), &program)
            .await
            .map_err(|error| error.to_string())?;
        let mirror = workshop.path().join("mirror");
        for host in hosts {
            let to = mirror.join(file(host));
            let place = || {
                std::fs::create_dir_all(to.parent().unwrap_or(&mirror))?;
                std::fs::hard_link(&program, &to)
            };
            place().map_err(|error| error.to_string())?;
        }
        tools
            .cache
            .keep(&mirror, entry)
            .map_err(|error| error.to_string())
    };
    match built.await {
        Ok(root) => Ok(Provider::Mirror {
            root,
            from: "built with Go",
        }),
        Err(why) => {
            chain.says("Go", why);
            Err(chain.broken())
        }
    }
}
