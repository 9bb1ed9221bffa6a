//! Where the gateway's sockets lie on this machine, and how a container finds them.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use reprise_model::WorkspaceId;

use crate::{EngineError, Labels, Leftover, LeftoverKind};

/// Where a container finds its socket's directory.
pub(super) const INSIDE: &str = "/run/reprise/door";

const SOCKET: &str = "gateway.sock";

/// What tells PID 1 to forward the gateway's address to the socket.
pub(super) fn forwarding(gateway: SocketAddr) -> [String; 4] {
    [
        "--forward-from".to_owned(),
        gateway.to_string(),
        "--forward-to".to_owned(),
        format!("{INSIDE}/{SOCKET}"),
    ]
}

/// The sockets' directories, one for each workspace.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    root: PathBuf,
}

impl Routes {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn door_dir(&self, workspace: WorkspaceId) -> PathBuf {
        self.dir(&workspace.to_string()).join("door")
    }

    pub(super) fn open(&self, labels: &Labels) -> Result<UnixListener, EngineError> {
        let door = self.door_dir(labels.workspace);
        fs::create_dir_all(&door).map_err(EngineError::io("make the directory", &door))?;
        let text = serde_json::to_vec(labels).expect("labels are JSON");
        let file = self.dir(&labels.workspace.to_string()).join("labels.json");
        fs::write(&file, text).map_err(EngineError::io("write", &file))?;
        let socket = door.join(SOCKET);
        let listener =
            UnixListener::bind(&socket).map_err(EngineError::io("listen on", &socket))?;
        // The workspace's user is another one; only its container can see the directory.
        for path in [&door, &socket] {
            fs::set_permissions(path, Permissions::from_mode(0o777))
                .map_err(EngineError::io("open up", path))?;
        }
        Ok(listener)
    }

    pub(super) fn leftovers(&self) -> Result<Vec<Leftover>, EngineError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(EngineError::io("list", &self.root)(error)),
        };
        Ok(entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let labels = labels_in(&entry.path());
                Some(Leftover::new(LeftoverKind::Route, name, labels))
            })
            .collect())
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), EngineError> {
        let dir = self.dir(name);
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(EngineError::io("remove", &dir)(error))
            }
            _ => Ok(()),
        }
    }
}

fn labels_in(dir: &Path) -> Option<Labels> {
    serde_json::from_slice(&fs::read(dir.join("labels.json")).ok()?).ok()
}
