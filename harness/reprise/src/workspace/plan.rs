//! What a start needs, made into what the engine starts and what PID 1 does.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reprise_engine::{InjectedFile, Labels, Mount, StartSpec, TOOLS_DIR, init_command};
use reprise_model::{Damage, InitSpec, Place, Script};

use super::{HOME, WorkspaceError};

/// Seconds all stop scripts together may take.
pub(super) const STOP_DEADLINE: u64 = 60;

/// A stop script that takes longer than a short grace.
const SLOW_STOP: &str = "sleep 30";

/// What a start needs beside the workspace's own.
#[derive(Debug, Clone, Default)]
pub struct StartPlan {
    /// The module's scripts; none at the native layer.
    pub scripts: Vec<Script>,
    /// The environment of every process.
    pub env: BTreeMap<String, String>,
    /// The agent's directory.
    pub directory: Option<String>,
    /// Programs, by what they are called on PATH.
    pub programs: BTreeMap<String, PathBuf>,
    /// Command lines, by what they are called on PATH.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Directories of this machine, by where they are shown.
    pub directories: BTreeMap<PathBuf, PathBuf>,
    /// Files below the home, written before the first start's first script.
    pub files: BTreeMap<String, String>,
    /// What of the home is left for this start, if not all of it.
    pub keep_only: Option<Vec<String>>,
    /// What befell the home before this start.
    pub damage: Option<Damage>,
    /// Files that somebody has written before this start.
    pub written: BTreeMap<String, String>,
    /// Directories and links that are to be there.
    pub places: Vec<Place>,
    /// Files below the home whose writing is of interest while the workspace stops.
    pub watch: Vec<String>,
    /// Programs of the image that are to be hidden.
    pub without: Vec<String>,
    /// Whether it is enough that a start script has begun.
    pub only_begun: bool,
    /// Whether an engine that can may start its processes again by itself.
    pub in_place: bool,
    /// Whether each start bears the same name, where the engine gives names.
    pub same_name: bool,
    /// Whether a stop shall take longer than a short grace.
    pub slow_stop: bool,
}

/// What each start of a workspace has in common.
pub(super) struct Around<'a> {
    /// Which start it is.
    pub(super) epoch: u32,
    pub(super) labels: &'a Labels,
    /// The gateway's address as the workspace knows it.
    pub(super) gateway: SocketAddr,
    /// This program, static.
    pub(super) program: &'a Path,
    /// The record's directory: what is made for a start stays there, and so tells what was started.
    pub(super) record: &'a Path,
}

impl StartPlan {
    /// What the engine starts.
    pub(super) fn spec(&self, around: &Around<'_>) -> Result<StartSpec, WorkspaceError> {
        let env = self.environment();
        Ok(StartSpec {
            labels: around.labels.clone(),
            hostname: "workspace".to_owned(),
            gateway: around.gateway,
            home: HOME.into(),
            init: init_command(),
            env: env.clone(),
            mounts: self.mounts(around)?,
            files: vec![InjectedFile {
                name: "spec.json".to_owned(),
                content: serde_json::to_string(&self.init(around.epoch, env))
                    .expect("a spec is JSON"),
            }],
            in_place: self.in_place,
            same_name: self.same_name,
        })
    }

    /// The environment of every process.
    fn environment(&self) -> BTreeMap<String, String> {
        let path =
            format!("{TOOLS_DIR}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let mut env = BTreeMap::from([
            ("HOME".to_owned(), HOME.to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("LOGNAME".to_owned(), reprise_engine::USER.to_owned()),
            ("PATH".to_owned(), path),
            ("SHELL".to_owned(), "/bin/bash".to_owned()),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
            ("USER".to_owned(), reprise_engine::USER.to_owned()),
        ]);
        env.extend(self.env.clone());
        env
    }

    /// What PID 1 does.
    fn init(&self, epoch: u32, env: BTreeMap<String, String>) -> InitSpec {
        let mut scripts = self.scripts.clone();
        if self.slow_stop {
            scripts.push(Script {
                display_name: "a slow stop".to_owned(),
                script: SLOW_STOP.to_owned(),
                run_on_start: false,
                run_on_stop: true,
                timeout: 0,
                log_path: None,
            });
        }
        InitSpec {
            scripts,
            env,
            home: HOME.to_owned(),
            directory: self.directory.clone().unwrap_or_else(|| HOME.to_owned()),
            stop_deadline: STOP_DEADLINE,
            probe_home: true,
            // A home that lost all but a few paths is new again for the rest.
            files: (epoch == 0 || self.keep_only.is_some()).then(|| self.files.clone()),
            keep_only: self.keep_only.clone(),
            damage: self.damage.clone(),
            written: self.written.clone(),
            places: self.places.clone(),
            watch: self.watch.clone(),
        }
    }

    /// What of this machine is shown in the workspace.
    fn mounts(&self, around: &Around<'_>) -> Result<Vec<Mount>, WorkspaceError> {
        let mut tools: Vec<(String, PathBuf)> = ["reprise", "coder"]
            .into_iter()
            .map(|name| (name.to_owned(), around.program.to_owned()))
            .chain(self.programs.clone())
            .collect();
        for (name, command) in &self.commands {
            tools.push((name.clone(), kept_command(around.record, name, command)?));
        }
        let mut mounts: Vec<Mount> = tools
            .into_iter()
            .map(|(name, source)| Mount {
                source,
                target: Path::new(TOOLS_DIR).join(name),
            })
            .collect();
        mounts.extend(self.directories.iter().map(|(target, source)| Mount {
            source: source.clone(),
            target: target.clone(),
        }));
        if !self.without.is_empty() {
            let nothing = kept_nothing(around.record)?;
            mounts.extend(self.without.iter().map(|program| Mount {
                source: nothing.clone(),
                target: Path::new("/usr/bin").join(program),
            }));
        }
        mounts.sort_by(|one, other| one.target.cmp(&other.target));
        Ok(mounts)
    }
}

/// A file that is no program: what is shown in the place of one that shall not be there.
fn kept_nothing(record: &Path) -> Result<PathBuf, WorkspaceError> {
    let file = record.join("nothing");
    match fs::write(&file, "") {
        Ok(()) => Ok(file),
        Err(source) => Err(WorkspaceError::Command { path: file, source }),
    }
}

/// Writes a script that becomes a command line.
fn kept_command(record: &Path, name: &str, command: &[String]) -> Result<PathBuf, WorkspaceError> {
    let dir = record.join("commands");
    let file = dir.join(name);
    let write = || {
        fs::create_dir_all(&dir)?;
        fs::write(&file, crate::agent::script(command))?;
        fs::set_permissions(&file, Permissions::from_mode(0o755))
    };
    match write() {
        Ok(()) => Ok(file),
        Err(source) => Err(WorkspaceError::Command { path: file, source }),
    }
}
