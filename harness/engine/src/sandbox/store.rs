//! What the sandbox engine keeps on disk: a directory for each volume and each instance, with their labels.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, geteuid};
use reprise_model::{InstanceId, WorkspaceId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::world::Plan;
use crate::disk::Disk;
use crate::{EngineError, Labels, Leftover, LeftoverKind, Uid as UserId};

#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

/// A running instance: who supervises it, and its PID 1 as this machine numbers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) labels: Labels,
    supervisor: i32,
    supervisor_began: u64,
    pub(crate) init: i32,
    init_began: u64,
}

impl Record {
    pub(crate) fn of(labels: &Labels, supervisor: i32, init: i32) -> Self {
        Self {
            labels: labels.clone(),
            supervisor,
            supervisor_began: began(supervisor).unwrap_or(0),
            init,
            init_began: began(init).unwrap_or(0),
        }
    }

    /// Whether either process is still there: a process id alone may have been given away since.
    pub(crate) fn alive(&self) -> bool {
        began(self.supervisor) == Some(self.supervisor_began)
            || began(self.init) == Some(self.init_began)
    }
}

/// When a process began, in clock ticks since boot: field 22 of `/proc/PID/stat`
/// (<https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>). `None` for one that is gone or a zombie.
fn began(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl Store {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.root.join("volumes").join(name)
    }

    fn instance_dir(&self, instance: &InstanceId) -> PathBuf {
        self.root.join("instances").join(&instance.0)
    }

    pub(crate) fn volume_home(&self, workspace: WorkspaceId) -> PathBuf {
        self.volume(&workspace.to_string()).join("home")
    }

    pub(crate) fn disk(&self, name: &str) -> Disk {
        Disk::of(self.volume(name), self.volume(name).join("home"))
    }

    pub(crate) fn create_volume(&self, labels: &Labels) -> Result<(), EngineError> {
        let home = self.volume_home(labels.workspace);
        make_dir(&home)?;
        if geteuid().is_root() {
            let id = UserId::CODER.0;
            nix::unistd::chown(&home, Some(Uid::from_raw(id)), Some(Gid::from_raw(id))).map_err(
                |error| EngineError::io("give to the workspace's user", &home)(error.into()),
            )?;
        }
        write(
            &self
                .volume(&labels.workspace.to_string())
                .join("labels.json"),
            labels,
        )
    }

    pub(crate) fn create_instance(
        &self,
        instance: &InstanceId,
        plan: &Plan,
    ) -> Result<PathBuf, EngineError> {
        let dir = self.instance_dir(instance);
        make_dir(&dir.join("world"))?;
        write(&dir.join("plan.json"), plan)?;
        Ok(dir)
    }

    pub(crate) fn record_instance(
        &self,
        instance: &InstanceId,
        record: &Record,
    ) -> Result<(), EngineError> {
        write(&self.instance_dir(instance).join("instance.json"), record)
    }

    pub(crate) fn instance(&self, instance: &InstanceId) -> Result<Record, EngineError> {
        read(&self.instance_dir(instance).join("instance.json"))
    }

    pub(crate) fn plan(&self, instance: &InstanceId) -> Result<Plan, EngineError> {
        read(&self.instance_dir(instance).join("plan.json"))
    }

    /// Every instance, with its record if it got so far as to have one.
    pub(crate) fn instances(&self) -> Result<Vec<(InstanceId, Option<Record>)>, EngineError> {
        let names = names(&self.root.join("instances"))?;
        Ok(names
            .into_iter()
            .map(|name| {
                let instance = InstanceId(name);
                let record = self.instance(&instance).ok();
                (instance, record)
            })
            .collect())
    }

    pub(crate) fn remove_instance(&self, instance: &InstanceId) -> Result<(), EngineError> {
        remove_tree(&self.instance_dir(instance))
    }

    pub(crate) async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        self.disk(name).unmount().await?;
        remove_tree(&self.volume(name))
    }

    pub(crate) fn leftovers(&self) -> Result<Vec<Leftover>, EngineError> {
        let mut found: Vec<Leftover> = self
            .instances()?
            .into_iter()
            .map(|(instance, record)| {
                let labels = record
                    .map(|record| record.labels)
                    .or_else(|| self.plan(&instance).ok().map(|plan| plan.spec.labels));
                Leftover::new(LeftoverKind::Instance, instance.0, labels)
            })
            .collect();
        for name in names(&self.root.join("volumes"))? {
            let labels = read(&self.volume(&name).join("labels.json")).ok();
            found.push(Leftover::new(LeftoverKind::Volume, name, labels));
        }
        Ok(found)
    }
}

fn make_dir(path: &Path) -> Result<(), EngineError> {
    fs::create_dir_all(path).map_err(EngineError::io("make the directory", path))
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), EngineError> {
    let text = serde_json::to_vec(value).expect("what the store keeps is JSON");
    fs::write(path, text).map_err(EngineError::io("write", path))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, EngineError> {
    let text = fs::read(path).map_err(EngineError::io("read", path))?;
    serde_json::from_slice(&text)
        .map_err(|error| EngineError::io("understand", path)(io::Error::other(error)))
}

fn names(dir: &Path) -> Result<Vec<String>, EngineError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(EngineError::io("list", dir)(error)),
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Removes a tree. An agent may have left directories that not even their owner may write to.
fn remove_tree(path: &Path) -> Result<(), EngineError> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        other => other,
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(EngineError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    // What cannot be opened up shows when the tree is removed.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
