//! What `images/agents.lock` pins: every package an agent is made of, by version and integrity.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use semver::Version;
use serde::{Deserialize, Serialize};

/// The lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsLock {
    /// Packages of npm's registry.
    pub npm: BTreeMap<String, NpmPin>,
    /// Distributions of Python's package index.
    pub pypi: BTreeMap<String, PypiPin>,
}

/// One package of npm's registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpmPin {
    /// The version.
    pub version: Version,
    /// The tarball's integrity, as npm's registry has it: `sha512-…`.
    pub integrity: String,
    /// The release before it, for a workspace whose agent moves up while it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<NpmPin>>,
}

/// One distribution of Python's package index, with all it requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PypiPin {
    /// The version.
    pub version: Version,
    /// The Python it is installed for, such as `3.11`.
    pub python: String,
    /// Lines of a requirements file, each with its hash
    /// (<https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode>).
    pub requirements: Vec<String>,
}

static LOCK: LazyLock<AgentsLock> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../images/agents.lock"))
        .expect("the lock file that is compiled in was read by a test")
});

impl AgentsLock {
    /// The lock file that came with this program.
    #[must_use]
    pub fn builtin() -> &'static Self {
        &LOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_has_its_hash() {
        let lock = AgentsLock::builtin();
        for (name, pin) in &lock.npm {
            for pin in [Some(pin), pin.earlier.as_deref()].into_iter().flatten() {
                assert!(pin.integrity.starts_with("sha512-"), "{name}");
            }
            assert!(
                pin.earlier
                    .as_ref()
                    .is_none_or(|earlier| earlier.version < pin.version)
            );
        }
        for (name, pin) in &lock.pypi {
            let own = format!("{name}=={} ", pin.version);
            assert!(pin.requirements.iter().any(|line| line.starts_with(&own)));
            for line in &pin.requirements {
                assert!(
                    line.contains("==") && line.contains(" --hash=sha256:"),
                    "{line}"
                );
            }
        }
    }
}
