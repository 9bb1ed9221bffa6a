//! One script's run: its command line, its environment, its streams.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use nix::unistd::Pid;
use reprise_model::{AgentEvent, InitSpec, LogStream, Script, ScriptId, ScriptPhase};

use crate::init::Notice;

/// Where scripts keep what they like, below `/tmp` as Coder's default has it; the issue that proposed
/// `CODER_MODULE_DATA_DIR` describes the layout.
pub(crate) fn data_base(env: &BTreeMap<String, String>) -> PathBuf {
    let base = env
        .get("CODER_AGENT_SCRIPT_DATA_DIR")
        .map_or("/tmp", String::as_str);
    Path::new(base).join("coder-script-data")
}

/// A script that was started.
pub(crate) struct Running {
    pub(crate) id: ScriptId,
    pub(crate) name: String,
    pub(crate) phase: ScriptPhase,
    pub(crate) pid: Pid,
    pub(crate) began: Instant,
    pub(crate) timeout: Option<std::time::Duration>,
    /// Streams still open.
    pub(crate) open_streams: usize,
    /// How it ended, and when.
    pub(crate) ended: Option<(Result<i32, String>, Instant)>,
    /// When it was told to go away, if it was.
    pub(crate) interrupted: Option<Instant>,
}

/// The program and arguments that run a script: the shebang's if it has one, else the user's shell, and in both
/// cases the text as the argument of `-c`, as Coder's agent does. White space may stand before the shebang:
/// Terraform's heredocs put it there.
fn command_line(script: &str) -> Result<(String, Vec<String>), String> {
    let mut words = match script.trim_start().strip_prefix("#!") {
        Some(rest) => {
            let line = rest.lines().next().unwrap_or_default();
            shell_words::split(line.trim()).map_err(|error| format!("shebang `{line}`: {error}"))?
        }
        None => Vec::new(),
    };
    if words.is_empty() {
        let shell = ["/bin/bash", "/bin/sh"]
            .into_iter()
            .find(|shell| Path::new(shell).exists())
            .unwrap_or("/bin/sh");
        words.push(shell.to_owned());
    }
    let program = words.remove(0);
    words.extend(["-c".to_owned(), script.to_owned()]);
    Ok((program, words))
}

/// Starts a script.
///
/// # Errors
/// In words for the log: the shebang cannot be read or run, or a directory cannot be made.
pub(crate) fn start(
    id: ScriptId,
    script: &Script,
    phase: ScriptPhase,
    spec: &InitSpec,
    data_dir: &Path,
    notices: &Sender<Notice>,
) -> Result<Running, String> {
    let (program, args) = command_line(&script.script)?;
    let make = |dir: &Path| {
        fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))
    };
    make(data_dir)?;
    let bin_dir = data_base(&spec.env).join("bin");
    make(&bin_dir)?;
    let log = log_file(id, script, spec)?;

    let path = spec
        .env
        .get("PATH")
        .cloned()
        .or_else(|| std::env::var("PATH").ok())
        .unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let directory = Some(Path::new(&spec.directory))
        .filter(|dir| dir.is_dir())
        .unwrap_or(Path::new(&spec.home));
    let mut command = Command::new(&program);
    command
        .args(args)
        .envs(&spec.env)
        .env("HOME", &spec.home)
        .env("PATH", format!("{path}:{}", bin_dir.display()))
        .env("CODER", "true")
        .env("CODER_SCRIPT_DATA_DIR", data_dir)
        .env("CODER_SCRIPT_BIN_DIR", &bin_dir)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: setsid is async-signal-safe and touches no memory of ours. A session of its own lets a time-out
    // reach the whole of a script.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()
                .map(drop)
                .map_err(std::io::Error::from)
        });
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let pid =
        Pid::from_raw(i32::try_from(child.id()).expect("the kernel's process ids fit in 31 bits"));
    let out = child.stdout.take().expect("it was asked for");
    let err = child.stderr.take().expect("it was asked for");
    forward(id, LogStream::Out, out, Arc::clone(&log), notices.clone());
    forward(id, LogStream::Err, err, log, notices.clone());
    // The child is not waited for here: PID 1 reaps every process in one place.
    Ok(Running {
        id,
        name: script.display_name.clone(),
        phase,
        pid,
        began: Instant::now(),
        timeout: (script.timeout > 0).then(|| std::time::Duration::from_secs(script.timeout)),
        open_streams: 2,
        ended: None,
        interrupted: None,
    })
}

/// Coder's agent also keeps each script's output in a file, by default below /tmp.
fn log_file(id: ScriptId, script: &Script, spec: &InitSpec) -> Result<Arc<Mutex<File>>, String> {
    let path = match script.log_path.as_deref().filter(|path| !path.is_empty()) {
        None => format!("/tmp/coder-script-{}.log", id.0),
        Some(path) => match path.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", spec.home),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("/tmp/{path}"),
        },
    };
    File::create(&path)
        .map(|file| Arc::new(Mutex::new(file)))
        .map_err(|error| format!("cannot write the script's log {path}: {error}"))
}

fn forward(
    id: ScriptId,
    stream: LogStream,
    pipe: impl std::io::Read + Send + 'static,
    log: Arc<Mutex<File>>,
    notices: Sender<Notice>,
) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if let Ok(mut log) = log.lock() {
                // A full disk must not stop the script; the line still goes to the runner.
                let _ = log.write_all(&line);
            }
            let text = String::from_utf8_lossy(&line);
            let event = AgentEvent::ScriptLog {
                id,
                stream,
                line: text.trim_end_matches(['\n', '\r']).to_owned(),
            };
            if notices.send(Notice::Say(event)).is_err() {
                return;
            }
        }
        let _ = notices.send(Notice::StreamClosed(id));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shebang_names_the_program() {
        let (program, args) = command_line("  #!/usr/bin/env bash\necho hi").expect("it parses");
        assert_eq!(program, "/usr/bin/env");
        assert_eq!(args[0], "bash");
        assert_eq!(args[1], "-c");
        assert!(args[2].contains("echo hi"));
    }

    #[test]
    fn a_script_without_shebang_runs_in_a_shell() {
        let (program, args) = command_line("echo hi").expect("it parses");
        assert!(program.ends_with("sh"));
        assert_eq!(args, ["-c", "echo hi"]);
    }

    #[test]
    fn an_unfinished_quote_is_named() {
        let error = command_line("#!/bin/sh 'x\n").expect_err("the quote is open");
        assert!(error.contains("/bin/sh 'x"), "{error}");
    }
}
