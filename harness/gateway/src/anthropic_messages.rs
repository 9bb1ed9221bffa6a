//! Anthropic Messages (<https://docs.anthropic.com/en/api/messages>), streamed and not.

use std::borrow::Cow;

use axum::http::StatusCode;
use reprise_model::{Message, NonceBook, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::{
    Answer, Malformed, Reply, ShellTool, Turn, halves, message, messages, named_event as event,
};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    messages: Vec<Said<'a>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    stream: Option<bool>,
    /// Claude Code asks for its titles as JSON.
    #[serde(borrow, default)]
    output_config: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// A block of a message's content. Thinking, images and documents hold nothing of ours.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        input: Value,
    },
    ToolResult {
        #[serde(default)]
        content: Value,
    },
    #[serde(other)]
    Other,
}

/// Splits a message where its blocks change from words to tools' results: both come as the user's.
fn spoken(said: &Said<'_>, book: &NonceBook) -> Result<Vec<Message>, Malformed> {
    let role = match said.role.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => return Err(Malformed(format!("`{other}` is no role of a message"))),
    };
    let wrong = |error| Malformed(format!("a message's content: {error}"));
    if said.content.get().starts_with('"') {
        let text: Cow<'_, str> = serde_json::from_str(said.content.get()).map_err(wrong)?;
        return Ok(vec![message(role, &text, book)]);
    }
    let blocks: Vec<Block> = serde_json::from_str(said.content.get()).map_err(wrong)?;
    let pieces = blocks.into_iter().filter_map(|block| match block {
        Block::Text { text } => Some((role, text)),
        Block::ToolUse { input } => Some((role, input.to_string())),
        Block::ToolResult { content } => Some((Role::Tool, content.to_string())),
        Block::Other => None,
    });
    let said = messages(pieces, book);
    // A message of nothing but thinking was said all the same.
    Ok(if said.is_empty() {
        vec![message(role, "", book)]
    } else {
        said
    })
}

pub(crate) fn parse(body: &[u8], book: &NonceBook) -> Result<Turn, Malformed> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Malformed(error.to_string()))?;
    let mut conversation = Vec::with_capacity(body.messages.len());
    for said in &body.messages {
        conversation.extend(spoken(said, book)?);
    }
    let tools = body.tools.unwrap_or_default();
    Ok(Turn {
        conversation,
        tools: tools.len(),
        shell: ShellTool::among(&tools, |tool| {
            Some((tool["name"].as_str()?, &tool["input_schema"]))
        }),
        model: body.model.into_owned(),
        stream: body.stream.unwrap_or(false),
        include_usage: true,
        json: body
            .output_config
            .is_some_and(|config| config.get().contains("json_schema")),
    })
}

pub(crate) fn reply(turn: &Turn, answer: &Answer, seq: u64) -> Reply {
    let (block, stop) = match answer {
        Answer::Text(text) => (json!({"type": "text", "text": text}), "end_turn"),
        Answer::Run { tool, command } => (
            json!({
                "type": "tool_use",
                "id": format!("toolu_{seq}"),
                "name": tool.name,
                "input": tool.call(command),
            }),
            "tool_use",
        ),
    };
    let mut whole = json!({
        "id": format!("msg_{seq}"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [block],
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    });
    if !turn.stream {
        return Reply::json(&whole);
    }
    // https://docs.anthropic.com/en/docs/build-with-claude/streaming
    whole["content"] = json!([]);
    whole["stop_reason"] = Value::Null;
    let mut pieces = vec![event(&json!({"type": "message_start", "message": whole}))];
    let mut empty = block.clone();
    let deltas: Vec<Value> = match answer {
        Answer::Text(text) => {
            empty["text"] = json!("");
            halves(text)
                .map(|half| json!({"type": "text_delta", "text": half}))
                .into()
        }
        Answer::Run { .. } => {
            empty["input"] = json!({});
            halves(&block["input"].to_string())
                .map(|half| json!({"type": "input_json_delta", "partial_json": half}))
                .into()
        }
    };
    pieces.push(event(
        &json!({"type": "content_block_start", "index": 0, "content_block": empty}),
    ));
    pieces.push(event(&json!({"type": "ping"})));
    pieces.extend(
        deltas.iter().map(|delta| {
            event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
        }),
    );
    pieces.push(event(&json!({"type": "content_block_stop", "index": 0})));
    pieces.push(event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": 20},
    })));
    pieces.push(event(&json!({"type": "message_stop"})));
    Reply::events(pieces)
}

/// An error as the API words it (<https://docs.anthropic.com/en/api/errors>).
pub(crate) fn error(status: StatusCode, message: &str) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

pub(crate) fn models() -> Value {
    let model = json!({"type": "model", "id": "mock-model", "display_name": "Mock", "created_at": "2025-01-01T00:00:00Z"});
    json!({"data": [model], "has_more": false, "first_id": "mock-model", "last_id": "mock-model"})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reprise_model::Mark;

    use super::*;

    #[test]
    fn a_tools_result_is_no_word_of_the_users() {
        let book = NonceBook::draw();
        let nonce = |mark| book.nonce(mark);
        let tool = nonce(Mark::Tool { epoch: 0 });
        let body = json!({
            "model": "m", "stream": true,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "<system-reminder/>"}, {"type": "text", "text": nonce(Mark::Prompt)}]},
                {"role": "system", "content": "tools"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": format!("echo {tool}")}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": tool}]}, {"type": "text", "text": nonce(Mark::FollowUp { turn: 1 })}]},
            ],
            "tools": [{"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}, "description": {"type": "string"}}}}],
        });
        let turn = parse(body.to_string().as_bytes(), &book).expect("it is well formed");
        let said: Vec<_> = turn
            .conversation
            .iter()
            .map(|message| (message.role, message.marks.clone()))
            .collect();
        assert_eq!(
            said,
            [
                (Role::User, vec![Mark::Prompt]),
                (Role::System, vec![]),
                (Role::Assistant, vec![Mark::Tool { epoch: 0 }]),
                (Role::Tool, vec![Mark::Tool { epoch: 0 }]),
                (Role::User, vec![Mark::FollowUp { turn: 1 }]),
            ]
        );
        let call = turn.shell.expect("Bash runs commands").call("ls");
        assert_eq!(call["command"], "ls");
        assert!(call["description"].is_string());
    }

    proptest! {
        #[test]
        fn never_panics_on_any_block(kind in "[a-z_]{0,12}", text in ".*", cut in 0usize..300) {
            let body = json!({"messages": [{"role": "user", "content": [{"type": kind, "text": text, "input": text}]}]}).to_string();
            let _ = parse(body.as_bytes(), &NonceBook::draw());
            let _ = parse(&body.as_bytes()[..cut.min(body.len())], &NonceBook::draw());
        }
    }
}
