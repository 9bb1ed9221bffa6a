//! Plays an agent: its command line is read, its session found or begun, and what its user says goes to its model.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::sys::signal::{SigHandler, Signal, signal};
use thiserror::Error;

use crate::command_line::{Call, CommandLineError, Which, Wish};
use crate::conversation::Said;
use crate::model::{Model, ModelError};
use crate::personality::{self, Personality};
use crate::sessions::{SessionError, Sessions};
use crate::turn::{self, Turns};
use crate::{fault, terminal};

/// What ends a play.
#[derive(Debug, Error)]
enum PlayError {
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("there is no session {0}")]
    NoSession(String),
    #[error("there is no session to go on with")]
    NoLast,
    #[error("cannot read {}: {source}", path.display())]
    Prompt { path: PathBuf, source: io::Error },
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Whether an agent of that name can be played.
#[must_use]
pub fn plays(command: &str) -> bool {
    personality::find(command).is_some()
}

/// Plays the agent `command` with `args`, the program's name first.
///
/// # Panics
/// If nobody of that name can be played; see [`plays`].
pub fn main<I>(command: &str, args: I) -> ExitCode
where
    I: IntoIterator<Item = OsString>,
{
    let personality =
        personality::find(command).expect("the caller asked whether it can be played");
    let args: Vec<String> = args
        .into_iter()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    match play(personality, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{command} (played by reprise): {error}");
            ExitCode::from(match error {
                PlayError::CommandLine(_) => 2,
                _ => 1,
            })
        }
    }
}

fn play(personality: &Personality, args: &[String]) -> Result<(), PlayError> {
    let wish = match personality.grammar.read(args)? {
        Call::Version => {
            println!("{} (played by reprise)", env!("CARGO_PKG_VERSION"));
            return Ok(());
        }
        Call::Help => {
            println!(
                "{} (played by reprise {})",
                personality.command,
                env!("CARGO_PKG_VERSION")
            );
            return Ok(());
        }
        Call::Setting => return Ok(()),
        Call::Session(wish) => wish,
    };
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let cwd = std::env::current_dir()?;
    let sessions = Sessions::new(personality.layout, home, &cwd);
    let (id, said) = session(&sessions, &wish)?;
    let mut play = Play {
        personality,
        model: Model::find(personality.protocol)?,
        sessions,
        id,
        said,
    };
    play.run(wish)
}

/// The session a command line asks for, and what was said in it.
fn session(sessions: &Sessions, wish: &Wish) -> Result<(String, Vec<Said>), PlayError> {
    match &wish.which {
        Which::New => Ok((sessions.begin(None), Vec::new())),
        Which::Called(name) => Ok((sessions.begin(Some(name.clone())), Vec::new())),
        Which::Latest => {
            let id = sessions.latest()?.ok_or(PlayError::NoLast)?;
            let said = sessions.load(&id)?.unwrap_or_default();
            Ok((id, fault::resumed(said)))
        }
        Which::Known(id) => {
            let said = sessions.load(id)?;
            let said = said.ok_or_else(|| PlayError::NoSession(id.clone()))?;
            Ok((id.clone(), fault::resumed(said)))
        }
    }
}

struct Play<'a> {
    personality: &'a Personality,
    model: Model,
    sessions: Sessions,
    id: String,
    said: Vec<Said>,
}

impl Play<'_> {
    fn run(&mut self, wish: Wish) -> Result<(), PlayError> {
        let mut prompt = wish.prompt;
        if let Some(path) = wish.prompt_file {
            let read = std::fs::read_to_string(&path);
            prompt = Some(read.map_err(|source| PlayError::Prompt { path, source })?);
        }
        let piped = !io::stdin().is_terminal();
        if prompt.is_none() && piped {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            prompt = Some(text);
        }
        let prompt = prompt.map(|text| text.trim().to_owned());
        if wish.headless || !io::stdout().is_terminal() {
            println!(
                "{}",
                turn::take(self, prompt.as_deref().unwrap_or_default())?
            );
            return Ok(());
        }
        // A shell script that starts a program in the background has it ignore Ctrl-C, by which AgentAPI ends agents.
        // SAFETY: sets a default disposition before any thread is started.
        unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.map_err(io::Error::from)?;
        println!(
            "{} (played by reprise), session {}\n",
            self.personality.command, self.id
        );
        if let Some(prompt) = prompt.filter(|prompt| !prompt.is_empty()) {
            self.answer_aloud(&prompt)?;
        }
        if piped {
            self.converse(BufReader::new(File::open(Path::new("/dev/tty"))?))
        } else {
            self.converse(io::stdin().lock())
        }
    }

    fn converse(&mut self, mut input: impl io::BufRead) -> Result<(), PlayError> {
        let frame = self.personality.frame;
        loop {
            frame.draw()?;
            let Some(text) = terminal::message(&mut input)? else {
                return Ok(());
            };
            frame.leave()?;
            if !text.is_empty() {
                self.answer_aloud(&text)?;
            }
        }
    }

    /// A model that does not answer ends no conversation at a terminal.
    fn answer_aloud(&mut self, text: &str) -> Result<(), PlayError> {
        println!("{text}\n");
        match turn::take(self, text) {
            Ok(answer) => println!("{answer}\n"),
            Err(PlayError::Model(error)) => println!("{error}\n"),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Turns for Play<'_> {
    type Error = PlayError;

    fn next(&mut self) -> Result<Said, PlayError> {
        Ok(self.model.next(&self.said)?)
    }

    fn keep(&mut self, said: Said) -> Result<(), PlayError> {
        self.sessions.append(&self.id, &said)?;
        self.said.push(said);
        Ok(())
    }
}
