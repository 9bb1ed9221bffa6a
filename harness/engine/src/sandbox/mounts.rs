//! What a sandbox sees of the file system.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::world::{Plan, WorldError, at};
use crate::{START_FILES, USER, Uid};

const NONE: Option<&str> = None;

/// What of the machine's root is shown as it is: its programs, their libraries and settings. Whatever else stands there is the
/// machine's own, and is not shown.
const SYSTEM: [&str; 13] = [
    "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "sbin", "sys",
    "usr",
];

/// Permissions of places that are empty in a new sandbox, where they are not those of any directory.
const MODES: [(&str, u32); 2] = [("root", 0o700), ("tmp", 0o1777)];

/// Places that programs look for in `/var`, with their permissions.
const VARIABLE: [(&str, u32); 4] = [
    ("cache", 0o755),
    ("lib", 0o755),
    ("log", 0o755),
    ("tmp", 0o1777),
];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Builds the world below `world` and makes it this process's root.
///
/// As root, the machine's root is the lower layer of an overlay whose upper layer is a tmpfs. A normal user may not
/// mount that, and gets the machine's root read-only.
pub(crate) fn build(plan: &Plan, world: &Path, root: bool) -> Result<(), WorldError> {
    let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
    mount(NONE, "/", NONE, private, NONE).map_err(at("make mounts private"))?;
    tmpfs(world, 0o755)?;
    let new_root = world.join("root");
    fs::create_dir(&new_root).map_err(at("make the new root"))?;
    if root {
        overlay(world, &new_root)?;
    } else {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some("/"), &new_root, NONE, flags, NONE).map_err(at("bind the machine's root"))?;
        read_only(&new_root, true)?;
    }
    hide_the_rest(world, &new_root)?;
    devices(&new_root.join("dev"))?;
    system(&new_root)?;
    files(plan, &new_root)?;
    identity(plan, &new_root)?;

    let home = inside(&new_root, &plan.spec.home);
    fs::create_dir_all(&home).map_err(at("make the home"))?;
    bind(&plan.volume, &home)?;
    for tool in &plan.spec.mounts {
        let target = inside(&new_root, &tool.target);
        make_target(&tool.source, &target).map_err(at(format!("make {}", target.display())))?;
        bind(&tool.source, &target)?;
        read_only(&target, false)?;
    }
    change_root(&new_root)
}

/// Puts something empty over what is the machine's own.
fn hide_the_rest(world: &Path, new_root: &Path) -> Result<(), WorldError> {
    let nothing = world.join("nothing");
    File::create(&nothing).map_err(at("make an empty file"))?;
    let failed = || at(format!("look into {}", new_root.display()));
    for entry in fs::read_dir(new_root).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let kind = entry.file_type().map_err(failed())?;
        let shown = SYSTEM.iter().any(|name| entry.file_name() == *name);
        if shown || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            let mode = MODES.iter().find(|(name, _)| entry.file_name() == *name);
            tmpfs(&entry.path(), mode.map_or(0o755, |(_, mode)| *mode))?;
        } else {
            bind(&nothing, &entry.path())?;
        }
    }
    let variable = new_root.join("var");
    if variable.is_dir() {
        for (place, mode) in VARIABLE {
            let place = variable.join(place);
            fs::create_dir_all(&place)
                .and_then(|()| fs::set_permissions(&place, Permissions::from_mode(mode)))
                .map_err(at(format!("make {}", place.display())))?;
        }
    }
    Ok(())
}

fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn tmpfs(place: &Path, mode: u32) -> Result<(), WorldError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = format!("mode={mode:o}");
    mount(
        Some("tmpfs"),
        place,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(at(format!("mount a tmpfs on {}", place.display())))
}

fn overlay(world: &Path, new_root: &Path) -> Result<(), WorldError> {
    let (upper, work) = (world.join("upper"), world.join("work"));
    for dir in [&upper, &work] {
        fs::create_dir(dir).map_err(at(format!("make {}", dir.display())))?;
    }
    let options = format!(
        "lowerdir=/,upperdir={},workdir={}",
        upper.display(),
        work.display()
    );
    mount(
        Some("overlay"),
        new_root,
        Some("overlay"),
        MsFlags::empty(),
        Some(options.as_str()),
    )
    .map_err(at("mount an overlay on the machine's root"))
}

fn bind(source: &Path, target: &Path) -> Result<(), WorldError> {
    let flags = MsFlags::MS_BIND;
    mount(Some(source), target, NONE, flags, NONE).map_err(at(format!(
        "bind {} to {}",
        source.display(),
        target.display()
    )))
}

/// Makes a mount read-only, with all below it if `recursive`: a plain remount of a normal user's bind would have to
/// repeat flags the kernel has locked, and would leave what is mounted below as it is
/// (<https://man7.org/linux/man-pages/man2/mount_setattr.2.html>).
fn read_only(place: &Path, recursive: bool) -> Result<(), WorldError> {
    let path = std::ffi::CString::new(place.as_os_str().as_encoded_bytes())
        .expect("a path of this program's own making holds no NUL");
    let attributes = nix::libc::mount_attr {
        attr_set: nix::libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if recursive {
        nix::libc::AT_RECURSIVE
    } else {
        0
    };
    // SAFETY: the path and the attributes outlive the call, and the size is that of the attributes.
    let result = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_mount_setattr,
            nix::libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<nix::libc::mount_attr>(),
        )
    };
    if result < 0 {
        return Err(at(format!("make {} read-only", place.display()))(
            io::Error::last_os_error(),
        ));
    }
    Ok(())
}

fn devices(dev: &Path) -> Result<(), WorldError> {
    // Device nodes are bound from the machine's own, so this tmpfs may hold them.
    let options = Some("mode=755");
    mount(
        Some("tmpfs"),
        dev,
        Some("tmpfs"),
        MsFlags::MS_NOSUID,
        options,
    )
    .map_err(at("mount a tmpfs on /dev"))?;
    for device in DEVICES {
        let source = Path::new("/dev").join(device);
        let target = dev.join(device);
        File::create(&target).map_err(at(format!("make /dev/{device}")))?;
        bind(&source, &target)?;
    }
    for dir in ["pts", "shm"] {
        fs::create_dir(dev.join(dir)).map_err(at(format!("make /dev/{dir}")))?;
    }
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    mount(
        Some("devpts"),
        &dev.join("pts"),
        Some("devpts"),
        MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        options,
    )
    .map_err(at("mount /dev/pts"))?;
    tmpfs(&dev.join("shm"), 0o1777)?;
    for (target, link) in [
        ("pts/ptmx", "ptmx"),
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ] {
        symlink(target, dev.join(link)).map_err(at(format!("link /dev/{link}")))?;
    }
    Ok(())
}

fn system(new_root: &Path) -> Result<(), WorldError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(
        Some("proc"),
        &new_root.join("proc"),
        Some("proc"),
        flags,
        NONE,
    )
    .map_err(at("mount /proc"))?;
    // Not every kernel lets a normal user mount it, and no agent needs it.
    let flags = flags | MsFlags::MS_RDONLY;
    let _ = mount(
        Some("sysfs"),
        &new_root.join("sys"),
        Some("sysfs"),
        flags,
        NONE,
    );
    Ok(())
}

fn files(plan: &Plan, new_root: &Path) -> Result<(), WorldError> {
    let dir = inside(new_root, Path::new(START_FILES));
    fs::create_dir_all(&dir).map_err(at(format!("make {START_FILES}")))?;
    for file in &plan.spec.files {
        let path = dir.join(&file.name);
        fs::write(&path, &file.content).map_err(at(format!("write {}", file.name)))?;
        // PID 1 is a normal user.
        fs::set_permissions(&path, Permissions::from_mode(0o644))
            .map_err(at(format!("open up {}", file.name)))?;
    }
    Ok(())
}

/// The machine's accounts with the workspace's user in place of whoever has that number or name, and a hosts file
/// that knows the sandbox's name.
fn identity(plan: &Plan, new_root: &Path) -> Result<(), WorldError> {
    let id = Uid::CODER.0.to_string();
    let others = |file: &str| -> String {
        fs::read_to_string(format!("/etc/{file}"))
            .unwrap_or_default()
            .lines()
            .filter(|line| {
                let mut fields = line.split(':');
                fields.next() != Some(USER) && fields.nth(1) != Some(id.as_str())
            })
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let home = plan.spec.home.display();
    let hostname = &plan.spec.hostname;
    let etc = inside(new_root, Path::new(START_FILES)).join("etc");
    fs::create_dir(&etc).map_err(at("make a place for /etc's files"))?;
    for (name, content) in [
        (
            "passwd",
            format!("{}{USER}:x:{id}:{id}::{home}:/bin/bash\n", others("passwd")),
        ),
        ("group", format!("{}{USER}:x:{id}:\n", others("group"))),
        (
            "hosts",
            format!("127.0.0.1 localhost {hostname}\n::1 localhost\n"),
        ),
    ] {
        let target = new_root.join("etc").join(name);
        if target.exists() {
            let source = etc.join(name);
            fs::write(&source, content).map_err(at(format!("write /etc/{name}")))?;
            bind(&source, &target)?;
        }
    }
    Ok(())
}

fn make_target(source: &Path, target: &Path) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    if source.is_dir() {
        fs::create_dir_all(target)
    } else {
        File::create(target).map(drop)
    }
}

/// Makes `new_root` the root and lets go of the old one: both are stacked on the same place for a moment
/// (<https://man7.org/linux/man-pages/man2/pivot_root.2.html>, "pivot_root(".", ".")").
fn change_root(new_root: &Path) -> Result<(), WorldError> {
    std::env::set_current_dir(new_root).map_err(at("enter the new root"))?;
    nix::unistd::pivot_root(".", ".").map_err(at("change the root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(at("let go of the old root"))?;
    std::env::set_current_dir("/").map_err(at("enter the root"))
}
