//! A conversation at a terminal: a prompt that looks as the played agent's does, and messages typed or pasted into it.

use std::io::{self, BufRead, Write};

/// How a prompt looks. AgentAPI reads readiness off it, each agent's by its own look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Between two rules, behind `>`.
    Rules,
    /// Behind `›`, with two lines below.
    Codex,
    /// With a bar at its left, and a thick rule below.
    OpenCode,
    /// In a box with round corners.
    Amp,
}

impl Frame {
    /// The lines above the prompt, what stands before it, and the lines below.
    fn parts(
        self,
    ) -> (
        &'static [&'static str],
        &'static str,
        &'static [&'static str],
    ) {
        const RULE: &str = "────────────────────────────────────────";
        match self {
            Self::Rules => (&[RULE], "> ", &[RULE]),
            Self::Codex => (&[], "› ", &["", "  ready"]),
            Self::OpenCode => (
                &["┃", "┃"],
                "┃ ",
                &[
                    "┃  Build",
                    "╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀",
                    "  commands",
                ],
            ),
            Self::Amp => (
                &["╭──────────────────────────────────────╮"],
                "│ ",
                &["╰──────────────────────────────────────╯"],
            ),
        }
    }

    /// Draws the prompt and puts the cursor into it.
    pub(crate) fn draw(self) -> io::Result<()> {
        let (above, before, below) = self.parts();
        let mut out = io::stdout().lock();
        for line in above {
            writeln!(out, "{line}")?;
        }
        write!(out, "{before}")?;
        for line in below {
            write!(out, "\n{line}")?;
        }
        write!(
            out,
            "\r\u{1b}[{}A\u{1b}[{}C",
            below.len(),
            before.chars().count()
        )?;
        out.flush()
    }

    /// Goes below the prompt, over what stands there.
    pub(crate) fn leave(self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        write!(out, "\r\u{1b}[J")?;
        out.flush()
    }
}

/// The next message, typed in a line or pasted over several; `None` when the input has ended.
pub(crate) fn message(input: &mut impl BufRead) -> io::Result<Option<String>> {
    const BEGIN: &str = "\u{1b}[200~";
    const END: &str = "\u{1b}[201~";
    let mut text = String::new();
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        text.push_str(&String::from_utf8_lossy(&line));
        let open = text.rfind(BEGIN);
        let closed = text.rfind(END);
        if open.is_none_or(|open| closed.is_some_and(|closed| closed > open)) {
            break;
        }
    }
    // What a terminal's driver typed before a paste is none of it.
    let pasted = text
        .rsplit_once(BEGIN)
        .map_or(text.as_str(), |(_, pasted)| pasted);
    let message = pasted.split(END).next().unwrap_or_default();
    Ok(Some(message.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paste_is_one_message() {
        let mut typed: &[u8] = "x\u{8}\u{1b}[200~first\nsecond\u{1b}[201~\nplain\n\n".as_bytes();
        let mut next = || message(&mut typed).expect("it can be read");
        assert_eq!(next().as_deref(), Some("first\nsecond"));
        assert_eq!(next().as_deref(), Some("plain"));
        assert_eq!(next().as_deref(), Some(""));
        assert_eq!(next(), None);
    }
}
