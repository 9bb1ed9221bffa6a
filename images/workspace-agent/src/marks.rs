//! Marks that tell whether a restart kept the home and nothing else: a word in the home, in every other place
//! that can be written to, and in a process's command line.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

const FILE: &str = ".reprise-mark";

/// Places outside the home; those that cannot be written to by this user hold no mark.
const OUTSIDE: [&str; 9] = [
    "/",
    "/etc",
    "/opt",
    "/run",
    "/tmp",
    "/usr/local/bin",
    "/var/lib",
    "/var/tmp",
    "/dev/shm",
];

fn home_mark() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_else(|| "/home/coder".into());
    Path::new(&home).join(FILE)
}

/// Leaves the marks. The first argument of the process that stays is the word.
///
/// # Errors
/// If the home cannot be written to, or the process cannot be started.
pub(crate) fn plant(word: &str) -> io::Result<()> {
    match fs::write(home_mark(), word) {
        // A full disk is a scenario of its own, and takes no mark.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
        written => written?,
    }
    let mut places = Vec::new();
    for dir in OUTSIDE {
        let path = Path::new(dir).join(FILE);
        if fs::write(&path, word).is_ok() {
            places.push(path);
        }
    }
    let program = std::env::current_exe()?;
    let child = Command::new(program)
        .args(["workspace-agent", "hold-mark", word])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    println!("{}", json!({ "places": places, "process": child.id() }));
    Ok(())
}

/// Prints which marks are there.
///
/// # Errors
/// If `/proc` cannot be read.
pub(crate) fn find(word: &str) -> io::Result<()> {
    let home = fs::read_to_string(home_mark()).is_ok_and(|text| text == word);
    let outside: Vec<PathBuf> = OUTSIDE
        .into_iter()
        .map(|dir| Path::new(dir).join(FILE))
        .filter(|path| fs::read_to_string(path).is_ok_and(|text| text == word))
        .collect();
    let holds = |cmdline: Vec<u8>| {
        let args: Vec<&[u8]> = cmdline.split(|byte| *byte == 0).collect();
        args.contains(&b"hold-mark".as_slice()) && args.contains(&word.as_bytes())
    };
    let process = fs::read_dir("/proc")?
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(holds);
    println!(
        "{}",
        json!({ "home": home, "outside": outside, "process": process })
    );
    Ok(())
}

/// Stays until it is killed.
pub(crate) fn hold() -> Result<(), String> {
    loop {
        nix::unistd::pause();
    }
}
