//! The eleven agents that can be played: what each documents of its command line and its session files.

use serde_json::{Value, json};

use crate::command_line::{Flag, Grammar, Word};
use crate::conversation::Said;
use crate::model::Protocol;
use crate::sessions::Layout;
use crate::terminal::Frame;

/// One agent.
pub(crate) struct Personality {
    /// What it is called on PATH.
    pub(crate) command: &'static str,
    /// How it speaks to its model.
    pub(crate) protocol: Protocol,
    /// Its command line.
    pub(crate) grammar: Grammar,
    /// Its session files.
    pub(crate) layout: Layout,
    /// How its prompt looks: AgentAPI knows agents by it.
    pub(crate) frame: Frame,
}

/// The one that is called so.
pub(crate) fn find(command: &str) -> Option<&'static Personality> {
    PERSONALITIES
        .iter()
        .find(|personality| personality.command == command)
}

fn no_head(_: &str, _: &str) -> Option<Value> {
    None
}

/// What an agent wants to know of a session stands beside what was said in it.
fn beside(id: &str, cwd: &str, said: &Said) -> Value {
    let kind = match said {
        Said::User { .. } | Said::Output { .. } => "user",
        Said::Model { .. } | Said::Call { .. } => "assistant",
    };
    json!({"type": kind, "sessionId": id, "cwd": cwd, "message": said})
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

pub(crate) static PERSONALITIES: &[Personality] = &[
    // https://docs.anthropic.com/en/docs/claude-code/cli-reference
    Personality {
        command: "claude",
        protocol: Protocol::Anthropic,
        grammar: Grammar {
            words: &[("mcp", Word::Setting), ("config", Word::Setting)],
            flags: &[
                ("-c", Flag::Latest),
                ("--continue", Flag::Latest),
                ("-r", Flag::Resume),
                ("--resume", Flag::Resume),
                ("--session-id", Flag::NewId),
                ("-p", Flag::Headless),
                ("--print", Flag::Headless),
                ("--dangerously-skip-permissions", Flag::Idle),
                ("--permission-mode", Flag::IdleValue),
                ("--model", Flag::IdleValue),
                ("--output-format", Flag::IdleValue),
            ],
        },
        layout: Layout::Lines {
            root: ".claude/projects",
            file: "{slug}/{id}.jsonl",
            head: no_head,
            line: beside,
        },
        frame: Frame::Rules,
    },
    // https://developers.openai.com/codex/cli/reference
    Personality {
        command: "codex",
        protocol: Protocol::Responses,
        grammar: Grammar {
            words: &[
                ("exec", Word::Headless),
                ("resume", Word::Resume),
                ("mcp", Word::Setting),
                ("login", Word::Setting),
            ],
            flags: &[
                ("--last", Flag::Latest),
                ("--model", Flag::IdleValue),
                ("-m", Flag::IdleValue),
                ("--config", Flag::IdleValue),
                ("-c", Flag::IdleValue),
                ("--sandbox", Flag::IdleValue),
                ("--skip-git-repo-check", Flag::Idle),
            ],
        },
        layout: Layout::Lines {
            root: ".codex/sessions",
            file: "{day}/rollout-{time}-{id}.jsonl",
            head: |id, cwd| {
                Some(
                    json!({"timestamp": now(), "type": "session_meta", "payload": {"id": id, "cwd": cwd}}),
                )
            },
            line: |_, _, said| json!({"timestamp": now(), "type": "response_item", "payload": said}),
        },
        frame: Frame::Codex,
    },
    // https://docs.github.com/en/copilot/reference/cli-command-reference
    Personality {
        command: "copilot",
        protocol: Protocol::Chat,
        grammar: Grammar {
            words: &[("config", Word::Setting)],
            flags: &[
                ("--continue", Flag::Latest),
                ("--resume", Flag::Resume),
                ("-p", Flag::Tell),
                ("--prompt", Flag::Tell),
                ("-i", Flag::Ask),
                ("--model", Flag::IdleValue),
                ("--allow-tool", Flag::IdleValue),
                ("--deny-tool", Flag::IdleValue),
                ("--add-dir", Flag::IdleValue),
                ("--allow-all-tools", Flag::Idle),
            ],
        },
        layout: Layout::Lines {
            root: ".copilot/session-state",
            file: "{id}/events.jsonl",
            head: |id, cwd| {
                Some(json!({"type": "session.start", "data": {"sessionId": id, "cwd": cwd}}))
            },
            line: |_, _, said| json!({"type": "message", "data": said}),
        },
        frame: Frame::Rules,
    },
    // https://opencode.ai/docs/cli
    Personality {
        command: "opencode",
        protocol: Protocol::Chat,
        grammar: Grammar {
            words: &[("run", Word::Headless), ("auth", Word::Setting)],
            flags: &[
                ("-c", Flag::Latest),
                ("--continue", Flag::Latest),
                ("-s", Flag::Resume),
                ("--session", Flag::Resume),
                ("--prompt", Flag::Ask),
                ("--model", Flag::IdleValue),
                ("-m", Flag::IdleValue),
            ],
        },
        layout: Layout::Database {
            path: ".local/share/opencode/opencode.db",
        },
        frame: Frame::OpenCode,
    },
    // https://block.github.io/goose/docs/guides/goose-cli-commands
    Personality {
        command: "goose",
        protocol: Protocol::Chat,
        grammar: Grammar {
            words: &[
                ("run", Word::Idle),
                ("session", Word::Idle),
                ("configure", Word::Setting),
            ],
            flags: &[
                ("--resume", Flag::Latest),
                ("-r", Flag::Latest),
                ("--name", Flag::Name),
                ("-n", Flag::Name),
                ("-t", Flag::Tell),
                ("--text", Flag::Tell),
                ("-i", Flag::AskFile),
                ("--instructions", Flag::AskFile),
                ("--interactive", Flag::Idle),
                ("-s", Flag::Idle),
            ],
        },
        layout: Layout::Database {
            path: ".local/share/goose/sessions/sessions.db",
        },
        frame: Frame::Rules,
    },
    // https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/cli-reference.md
    Personality {
        command: "gemini",
        protocol: Protocol::Gemini,
        grammar: Grammar {
            words: &[("mcp", Word::Setting), ("extensions", Word::Setting)],
            flags: &[
                ("-r", Flag::Resume),
                ("--resume", Flag::Resume),
                ("--session-id", Flag::NewId),
                ("-p", Flag::Tell),
                ("--prompt", Flag::Tell),
                ("-i", Flag::Ask),
                ("--prompt-interactive", Flag::Ask),
                ("-m", Flag::IdleValue),
                ("--model", Flag::IdleValue),
                ("-y", Flag::Idle),
                ("--yolo", Flag::Idle),
                ("--skip-trust", Flag::Idle),
            ],
        },
        layout: Layout::Lines {
            root: ".gemini/tmp",
            file: "{name}/chats/session-{time}-{id}.jsonl",
            head: |id, cwd| {
                Some(json!({"sessionId": id, "cwd": cwd, "startTime": now(), "kind": "main"}))
            },
            line: beside,
        },
        frame: Frame::Rules,
    },
    // https://aider.chat/docs/config/options.html
    Personality {
        command: "aider",
        protocol: Protocol::PlainChat,
        grammar: Grammar {
            words: &[],
            flags: &[
                ("--restore-chat-history", Flag::Latest),
                ("--message", Flag::Tell),
                ("-m", Flag::Tell),
                ("--model", Flag::IdleValue),
                ("--yes-always", Flag::Idle),
                ("--no-git", Flag::Idle),
                ("--no-check-update", Flag::Idle),
                ("--analytics-disable", Flag::Idle),
                ("--no-show-model-warnings", Flag::Idle),
            ],
        },
        layout: Layout::Markdown {
            file: ".aider.chat.history.md",
        },
        frame: Frame::Rules,
    },
    // https://docs.augmentcode.com/cli/reference
    Personality {
        command: "auggie",
        protocol: Protocol::Chat,
        grammar: Grammar {
            words: &[],
            flags: &[
                ("-c", Flag::Latest),
                ("--continue", Flag::Latest),
                ("--resume", Flag::Resume),
                ("-r", Flag::Resume),
                ("-i", Flag::Ask),
                ("--instruction", Flag::Ask),
                ("-if", Flag::AskFile),
                ("--instruction-file", Flag::AskFile),
                ("-p", Flag::Headless),
                ("--print", Flag::Headless),
                ("--quiet", Flag::Idle),
                ("--compact", Flag::Idle),
                ("--model", Flag::IdleValue),
                ("--mcp-config", Flag::IdleValue),
                ("--rules", Flag::IdleValue),
                ("--workspace-root", Flag::IdleValue),
            ],
        },
        layout: Layout::Documents {
            root: ".augment/sessions",
        },
        frame: Frame::Rules,
    },
    // https://ampcode.com/manual#cli: its threads lie on its vendor's servers; the player keeps them in a file instead.
    Personality {
        command: "amp",
        protocol: Protocol::Anthropic,
        grammar: Grammar {
            words: &[
                ("threads", Word::Idle),
                ("continue", Word::Resume),
                ("mcp", Word::Setting),
            ],
            flags: &[
                ("--last", Flag::Latest),
                ("-x", Flag::Headless),
                ("--execute", Flag::Headless),
                ("--mode", Flag::IdleValue),
                ("-m", Flag::IdleValue),
                ("--dangerously-allow-all", Flag::Idle),
            ],
        },
        layout: Layout::Documents {
            root: ".local/share/amp/threads",
        },
        frame: Frame::Amp,
    },
    // https://docs.cursor.com/en/cli/reference/parameters
    Personality {
        command: "cursor-agent",
        protocol: Protocol::Chat,
        grammar: Grammar {
            words: &[
                ("login", Word::Setting),
                ("mcp", Word::Setting),
                ("status", Word::Setting),
            ],
            flags: &[
                ("--continue", Flag::Latest),
                ("--resume", Flag::Resume),
                ("-p", Flag::Headless),
                ("--print", Flag::Headless),
                ("-f", Flag::Idle),
                ("--force", Flag::Idle),
                ("--model", Flag::IdleValue),
                ("-m", Flag::IdleValue),
                ("--output-format", Flag::IdleValue),
            ],
        },
        layout: Layout::Database {
            path: ".cursor/chats/store.db",
        },
        frame: Frame::Rules,
    },
    // https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-reference.html
    Personality {
        command: "q",
        protocol: Protocol::Anthropic,
        grammar: Grammar {
            words: &[
                ("chat", Word::Idle),
                ("mcp", Word::Setting),
                ("settings", Word::Setting),
                ("login", Word::Setting),
            ],
            flags: &[
                ("--resume", Flag::Latest),
                ("-r", Flag::Latest),
                ("--no-interactive", Flag::Headless),
                ("--trust-all-tools", Flag::Idle),
                ("-a", Flag::Idle),
                ("--agent", Flag::IdleValue),
                ("--model", Flag::IdleValue),
            ],
        },
        layout: Layout::Database {
            path: ".local/share/amazon-q/data.sqlite3",
        },
        frame: Frame::Rules,
    },
];
