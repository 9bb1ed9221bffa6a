//! A conversation: what the user says goes to the model, what the model asks for is done, all of it is kept.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::conversation::Said;
use crate::fault::{self, Fault};
use crate::model::{Model, ModelError, Protocol};
use crate::store::{Store, StoreError};
use crate::terminal;
use crate::turn::{self, Turns};

/// What can end a conversation.
#[derive(Debug, Error)]
pub enum ChatError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody said where the model is.
    #[error(
        "REFERENCE_API_BASE is not set: it is the address of an OpenAI-compatible API, such as http://127.0.0.1:8080/v1"
    )]
    NoModel,
    /// The model does not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The prompt cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Prompt {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The terminal is gone.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
    /// It was told to.
    #[error("a session that is resumed ends this agent")]
    Dead,
}

/// One session's conversation.
pub(crate) struct Chat {
    store: Store,
    session: String,
    said: Vec<Said>,
    model: Model,
    resumed: bool,
}

impl Chat {
    pub(crate) fn begin(store: Store, session: String, resume: bool) -> Result<Self, ChatError> {
        let base = std::env::var("REFERENCE_API_BASE").map_err(|_| ChatError::NoModel)?;
        let base = base.trim_end_matches('/').trim_end_matches("/v1");
        let model = Model::at(base, Protocol::Chat)?;
        let said = match resume {
            true if fault::is(Fault::DiesWhenResumed) => return Err(ChatError::Dead),
            true if fault::is(Fault::AnotherSessionResumed) => store.newest_but(&session)?,
            true => fault::resumed(store.said(&session)?),
            false => Vec::new(),
        };
        if resume && said.is_empty() {
            eprintln!("reference-agent: there is no session `{session}`; a new one begins");
        }
        if !resume {
            store.log_in()?;
        }
        if resume && fault::is(Fault::LoginLost) {
            store.log_out()?;
        }
        if fault::is(Fault::SlowGrowth) {
            store.swell()?;
        }
        if fault::is(Fault::FileOfAnother) {
            store.note(fault::FOREIGN)?;
        }
        let mut chat = Self {
            store,
            session,
            said,
            model,
            resumed: resume,
        };
        if fault::is(Fault::TitleHoldsTask)
            && let Some(Said::User { text }) = chat.said.first()
        {
            chat.model.title(&text.clone())?;
        }
        if resume
            && fault::is(Fault::TaskResentNatively)
            && let Some(Said::User { text }) = chat.said.first().cloned()
        {
            chat.tell(&text)?;
        }
        Ok(chat)
    }

    /// Ends a turn that began with the message at `from`.
    fn end_turn(&mut self, from: usize) -> Result<(), ChatError> {
        if fault::is(Fault::KeptOnlyWhenAnswered) {
            for said in &self.said[from..] {
                self.store.append(&self.session, said)?;
            }
        }
        Ok(self.store.end_turn(&self.session)?)
    }

    /// What the user says.
    pub(crate) fn tell(&mut self, text: &str) -> Result<String, ChatError> {
        let first = self.said.is_empty() && !self.resumed;
        match fault::wanted() {
            Some(Fault::TaskNeverSent) if first => return Ok("Done.".to_owned()),
            Some(Fault::FollowUpSwallowed) if !first => return Ok("Noted.".to_owned()),
            Some(Fault::TaskSentTwice) if first => {
                self.turn(text)?;
                self.said.clear();
            }
            Some(Fault::TaskDoubled) if first => {
                self.turn(text)?;
            }
            Some(Fault::TitleHoldsTask) if first => self.model.title(text)?,
            Some(Fault::WordsOfAnother) => {
                return self.turn(&format!("{text} And remember {}.", fault::FOREIGN));
            }
            _ => {}
        }
        self.turn(text)
    }

    /// One turn: the answer to `text`.
    fn turn(&mut self, text: &str) -> Result<String, ChatError> {
        let from = self.said.len();
        let answer = turn::take(self, text)?;
        self.end_turn(from)?;
        Ok(answer)
    }

    /// Takes messages from standard input, a line each.
    pub(crate) fn converse(&mut self, prompt_file: Option<&Path>) -> Result<(), ChatError> {
        println!("reference-agent, session {}", self.session);
        if self.resumed && fault::is(Fault::UnaskedTurn) {
            self.answer_aloud("Where were we?")?;
        }
        if let Some(path) = prompt_file {
            let prompt = std::fs::read_to_string(path).map_err(|source| ChatError::Prompt {
                path: path.to_owned(),
                source,
            })?;
            self.answer_aloud(prompt.trim())?;
        }
        prompt()?;
        let mut input = io::stdin().lock();
        while let Some(text) = terminal::message(&mut input)? {
            if !text.is_empty() {
                self.answer_aloud(&text)?;
            }
            prompt()?;
        }
        Ok(())
    }

    /// A model that does not answer ends no conversation at a terminal.
    fn answer_aloud(&mut self, text: &str) -> Result<(), ChatError> {
        match self.tell(text) {
            Ok(answer) => println!("\n{answer}\n"),
            Err(ChatError::Model(error)) => println!("\n{error}\n"),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Turns for Chat {
    type Error = ChatError;

    fn next(&mut self) -> Result<Said, ChatError> {
        Ok(self.model.next(&self.said)?)
    }

    fn keep(&mut self, said: Said) -> Result<(), ChatError> {
        if !fault::is(Fault::KeptOnlyWhenAnswered) {
            self.store.append(&self.session, &said)?;
        }
        self.said.push(said);
        Ok(())
    }
}

fn prompt() -> io::Result<()> {
    print!("> ");
    io::stdout().flush()
}
