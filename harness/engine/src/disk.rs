//! A home on a disk of its own: an ext4 image, mounted through a loop device. It has a size that is enforced, and it can lose
//! power: what the filesystem has not written yet is not in the image either.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::unistd::{Gid, Uid, geteuid};
use tokio::process::Command;

use crate::{EngineError, Missing};

/// The image, beside the directory it is mounted on.
const IMAGE: &str = "disk.img";

/// What the image was when the power went.
const COPY: &str = "disk.lost";

/// A disk and where it is mounted.
#[derive(Debug)]
pub(crate) struct Disk {
    dir: PathBuf,
    home: PathBuf,
}

/// What this machine lacks for disks, if anything.
pub(crate) fn lacks() -> Option<Missing> {
    let found = |program: &str| {
        ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
            .iter()
            .any(|dir| Path::new(dir).join(program).exists())
    };
    let missing = |what: &str, remedy: &str| {
        Some(Missing {
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        })
    };
    if !geteuid().is_root() {
        return missing("a disk of its own takes root", "run it as root");
    }
    if !Path::new("/dev/loop-control").exists() {
        return missing(
            "there are no loop devices",
            "load the kernel's module `loop`",
        );
    }
    if !found("mkfs.ext4") {
        return missing("mkfs.ext4 is not there", "install e2fsprogs");
    }
    None
}

impl Disk {
    /// The disk whose image lies in `dir` and is mounted on `home`.
    pub(crate) fn of(dir: PathBuf, home: PathBuf) -> Self {
        Self { dir, home }
    }

    /// Makes a disk of `bytes` for the user `owner`.
    pub(crate) async fn make(&self, bytes: u64, owner: u32) -> Result<(), EngineError> {
        fs::create_dir_all(&self.home)
            .map_err(EngineError::io("make the directory", &self.home))?;
        let image = self.dir.join(IMAGE);
        fs::File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .map_err(EngineError::io("make", &image))?;
        // All of it is the user's, and nothing is left for a background thread of the kernel's to write.
        let options = "lazy_itable_init=0,lazy_journal_init=0,root_owner=";
        run(Command::new("mkfs.ext4")
            .args(["-q", "-m", "0", "-E", &format!("{options}{owner}:{owner}")])
            .arg(&image))
        .await?;
        self.mount().await?;
        let id = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
        nix::unistd::chown(&self.home, id.0, id.1)
            .map_err(|error| EngineError::io("give away", &self.home)(error.into()))?;
        // A home with a directory nobody put there would be no new one.
        let found = self.home.join("lost+found");
        fs::remove_dir(&found).map_err(EngineError::io("remove", &found))
    }

    async fn mount(&self) -> Result<(), EngineError> {
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(self.dir.join(IMAGE))
            .arg(&self.home))
        .await
    }

    /// Keeps the image as the disk has it at this moment.
    pub(crate) async fn freeze(&self) -> Result<(), EngineError> {
        run(Command::new("cp")
            .args(["--sparse=always", "--reflink=auto"])
            .arg(self.dir.join(IMAGE))
            .arg(self.dir.join(COPY)))
        .await
    }

    /// Goes on with the image that was kept: its journal is replayed when it is mounted.
    pub(crate) async fn thaw(&self) -> Result<(), EngineError> {
        run(Command::new("umount").arg(&self.home)).await?;
        let (copy, image) = (self.dir.join(COPY), self.dir.join(IMAGE));
        fs::rename(&copy, &image).map_err(EngineError::io("put back", &image))?;
        self.mount().await
    }

    /// Ends the mount and removes the image.
    pub(crate) async fn remove(&self) -> Result<(), EngineError> {
        self.unmount().await?;
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(EngineError::io("remove", &self.dir)(error))
            }
            _ => Ok(()),
        }
    }

    /// Ends the mount, if there is one.
    pub(crate) async fn unmount(&self) -> Result<(), EngineError> {
        let mounts = fs::read_to_string("/proc/self/mounts")
            .map_err(EngineError::io("read", "/proc/self/mounts"))?;
        let home = self.home.display().to_string();
        let mounted = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .any(|place| place == home);
        if mounted {
            run(Command::new("umount").arg(&self.home)).await?;
        }
        Ok(())
    }
}

async fn run(command: &mut Command) -> Result<(), EngineError> {
    let name = command.as_std().get_program().to_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(EngineError::io("run", &name))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(EngineError::io("use", &name)(std::io::Error::other(said)))
}
