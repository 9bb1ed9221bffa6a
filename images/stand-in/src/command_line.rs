//! The documented command lines of the agents that are played: what they are told to say, and in which session.

use std::path::PathBuf;

use thiserror::Error;

/// Which session a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Which {
    /// A new one.
    #[default]
    New,
    /// A new one of this id.
    Called(String),
    /// The last one of this directory.
    Latest,
    /// This one.
    Known(String),
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Wish {
    pub(crate) which: Which,
    pub(crate) prompt: Option<String>,
    pub(crate) prompt_file: Option<PathBuf>,
    /// Whether it ends with the answer.
    pub(crate) headless: bool,
}

/// What a call of an agent's command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Version,
    Help,
    /// It changes a setting that means nothing to a session.
    Setting,
    Session(Wish),
}

/// A command line that the agent does not document, as far as its player knows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum CommandLineError {
    #[error("unknown option `{0}`")]
    Unknown(String),
    #[error("option `{0}` needs a value")]
    NoValue(String),
}

/// What a flag means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// Nothing for a session.
    Idle,
    /// Its value means nothing for a session.
    IdleValue,
    /// End with the answer; the prompt stands elsewhere.
    Headless,
    /// Its value is the prompt; end with the answer.
    Tell,
    /// Its value is the prompt; stay.
    Ask,
    /// Its value is a file with the prompt; stay.
    AskFile,
    /// The last session of this directory.
    Latest,
    /// Its value is a session's id, or `latest`; without a value, the last session.
    Resume,
    /// Its value is the id of a new session.
    NewId,
    /// Its value is a session's name: a new one, or with another flag a known one.
    Name,
}

/// A word among the arguments that is no prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// It only names what follows.
    Idle,
    /// End with the answer.
    Headless,
    /// A known session follows: its id, or `--last`.
    Resume,
    /// All that follows is about settings.
    Setting,
}

/// An agent's command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grammar {
    pub(crate) words: &'static [(&'static str, Word)],
    pub(crate) flags: &'static [(&'static str, Flag)],
}

impl Grammar {
    pub(crate) fn read(&self, args: &[String]) -> Result<Call, CommandLineError> {
        let mut wish = Wish::default();
        let mut name = None;
        let mut resumes_id = false;
        let mut rest = args.iter().map(String::as_str).peekable();
        let mut words_may_come = true;
        let mut only_prompt = false;
        while let Some(arg) = rest.next() {
            if only_prompt || arg == "-" || !arg.starts_with('-') {
                let word = self.words.iter().find(|(word, _)| *word == arg);
                match word.filter(|_| words_may_come && !only_prompt) {
                    Some((_, Word::Idle)) => continue,
                    Some((_, Word::Headless)) => wish.headless = true,
                    Some((_, Word::Resume)) => resumes_id = true,
                    Some((_, Word::Setting)) => return Ok(Call::Setting),
                    None if resumes_id => {
                        wish.which = Which::Known(arg.to_owned());
                        resumes_id = false;
                    }
                    None => {
                        words_may_come = false;
                        let prompt = wish.prompt.get_or_insert_default();
                        if !prompt.is_empty() {
                            prompt.push(' ');
                        }
                        prompt.push_str(arg);
                    }
                }
                continue;
            }
            if arg == "--" {
                only_prompt = true;
                continue;
            }
            let (flag, given) = match arg.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (arg, None),
            };
            match flag {
                "--version" | "-V" => return Ok(Call::Version),
                "--help" | "-h" => return Ok(Call::Help),
                _ => {}
            }
            let (_, meaning) = self
                .flags
                .iter()
                .find(|(known, _)| *known == flag)
                .ok_or_else(|| CommandLineError::Unknown(flag.to_owned()))?;
            let mut value = || {
                given
                    .clone()
                    .or_else(|| rest.next().map(ToOwned::to_owned))
                    .ok_or_else(|| CommandLineError::NoValue(flag.to_owned()))
            };
            match meaning {
                Flag::Idle => {}
                Flag::IdleValue => drop(value()?),
                Flag::Headless => wish.headless = true,
                Flag::Tell => {
                    wish.prompt = Some(value()?);
                    wish.headless = true;
                }
                Flag::Ask => wish.prompt = Some(value()?),
                Flag::AskFile => wish.prompt_file = Some(value()?.into()),
                Flag::Latest => {
                    wish.which = Which::Latest;
                    resumes_id = false;
                }
                Flag::Resume => {
                    let id = match (&given, rest.peek()) {
                        (Some(id), _) => Some(id.clone()),
                        (None, Some(next)) if !next.starts_with('-') => {
                            rest.next().map(ToOwned::to_owned)
                        }
                        _ => None,
                    };
                    wish.which = match id {
                        Some(id) if id != "latest" => Which::Known(id),
                        _ => Which::Latest,
                    };
                }
                Flag::NewId => wish.which = Which::Called(value()?),
                Flag::Name => name = Some(value()?),
            }
        }
        if let Some(name) = name {
            wish.which = match wish.which {
                Which::New => Which::Called(name),
                _ => Which::Known(name),
            };
        }
        Ok(Call::Session(wish))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAMMAR: Grammar = Grammar {
        words: &[
            ("run", Word::Headless),
            ("resume", Word::Resume),
            ("mcp", Word::Setting),
        ],
        flags: &[
            ("-c", Flag::Latest),
            ("--resume", Flag::Resume),
            ("--model", Flag::IdleValue),
            ("-p", Flag::Tell),
            ("--name", Flag::Name),
        ],
    };

    fn wish(line: &str) -> Wish {
        let args: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        match GRAMMAR.read(&args) {
            Ok(Call::Session(wish)) => wish,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_what_modules_write() {
        assert_eq!(wish("--model m do it").prompt.as_deref(), Some("do it"));
        assert_eq!(wish("run do it").prompt.as_deref(), Some("do it"));
        assert!(wish("run do it").headless);
        assert_eq!(wish("resume 7 go").which, Which::Known("7".to_owned()));
        assert_eq!(wish("--resume latest -p go").which, Which::Latest);
        assert_eq!(wish("--resume --model m").which, Which::Latest);
        assert_eq!(wish("-c --name n").which, Which::Known("n".to_owned()));
        assert_eq!(wish("-- run").prompt.as_deref(), Some("run"));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let read = |line: &str| GRAMMAR.read(&[line.to_owned()]);
        assert!(matches!(read("--nope"), Err(CommandLineError::Unknown(_))));
        assert!(matches!(read("-p"), Err(CommandLineError::NoValue(_))));
        assert_eq!(read("mcp"), Ok(Call::Setting));
    }
}
