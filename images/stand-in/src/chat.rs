//! A conversation: what the user says goes to the model, what the model asks for is done, all of it is kept.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

use crate::store::{Store, StoreError};
use crate::{shell, terminal};

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
    #[error("the model does not answer: {0}")]
    Model(#[from] reqwest::Error),
    /// The model's answer is none.
    #[error("the model's answer is none: {0}")]
    Answer(Value),
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
}

/// One session's conversation.
pub(crate) struct Chat {
    store: Store,
    session: String,
    messages: Vec<Value>,
    client: reqwest::blocking::Client,
    url: String,
}

impl Chat {
    pub(crate) fn begin(store: Store, session: String, resume: bool) -> Result<Self, ChatError> {
        let messages = if resume {
            store.messages(&session)?
        } else {
            Vec::new()
        };
        if resume && messages.is_empty() {
            eprintln!("reference-agent: there is no session `{session}`; a new one begins");
        }
        let base = std::env::var("REFERENCE_API_BASE").map_err(|_| ChatError::NoModel)?;
        let client = reqwest::blocking::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()?;
        Ok(Self {
            store,
            session,
            messages,
            client,
            url: format!("{}/chat/completions", base.trim_end_matches('/')),
        })
    }

    fn keep(&mut self, message: Value) -> Result<(), ChatError> {
        self.store.append(&self.session, &message)?;
        self.messages.push(message);
        Ok(())
    }

    /// One turn: the answer to `text`.
    pub(crate) fn tell(&mut self, text: &str) -> Result<String, ChatError> {
        self.keep(json!({"role": "user", "content": text}))?;
        loop {
            let message = self.ask()?;
            let calls = message["tool_calls"].as_array().cloned();
            let words = message["content"].as_str().unwrap_or_default().to_owned();
            self.keep(message)?;
            let Some(calls) = calls.filter(|calls| !calls.is_empty()) else {
                self.store.end_turn(&self.session)?;
                return Ok(words);
            };
            for call in calls {
                let output = run(&call);
                self.keep(json!({
                    "role": "tool", "tool_call_id": call["id"], "content": output
                }))?;
            }
        }
    }

    fn ask(&self) -> Result<Value, ChatError> {
        let body = json!({
            "model": "mock-model",
            "messages": self.messages,
            "tools": [{"type": "function", "function": {
                "name": "shell",
                "description": "Run a command.",
                "parameters": {
                    "type": "object",
                    "properties": {"command": {"type": "string"}},
                    "required": ["command"]
                }
            }}],
        });
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(body.to_string());
        let text = crate::retry::text(&request)?;
        let answer: Value =
            serde_json::from_str(&text).map_err(|_| ChatError::Answer(Value::String(text)))?;
        let message = answer["choices"][0]["message"].clone();
        if message.is_object() {
            Ok(message)
        } else {
            Err(ChatError::Answer(answer))
        }
    }

    /// Takes messages from standard input, a line each.
    pub(crate) fn converse(&mut self, prompt_file: Option<&Path>) -> Result<(), ChatError> {
        println!("reference-agent, session {}", self.session);
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
            Err(error @ (ChatError::Model(_) | ChatError::Answer(_))) => println!("\n{error}\n"),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn prompt() -> io::Result<()> {
    print!("> ");
    io::stdout().flush()
}

fn run(call: &Value) -> String {
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    let command = serde_json::from_str::<Value>(arguments)
        .ok()
        .and_then(|arguments| Some(arguments["command"].as_str()?.to_owned()));
    match command {
        None => "the call names no command".to_owned(),
        Some(command) => shell::run(&command),
    }
}
