//! `OpenAI` Chat Completions (<https://platform.openai.com/docs/api-reference/chat>), streamed and not.

use std::borrow::Cow;

use axum::http::StatusCode;
use bytes::Bytes;
use reprise_model::{NonceBook, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::{Answer, Malformed, Reply, ShellTool, Turn, halves, message};

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
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(borrow, default)]
    response_format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

impl Said<'_> {
    /// The message's words: a string, or the text of its parts.
    fn text(&self) -> Result<Cow<'_, str>, Malformed> {
        let Some(content) = self.content else {
            return Ok(Cow::Borrowed(""));
        };
        let wrong = |error| Malformed(format!("a message's content: {error}"));
        match content.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(content.get()).map_err(wrong),
            Some(b'[') => {
                let parts: Vec<Part<'_>> = serde_json::from_str(content.get()).map_err(wrong)?;
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| part.text.as_deref())
                    .collect();
                Ok(Cow::Owned(texts.join("\n")))
            }
            _ => Ok(Cow::Borrowed("")),
        }
    }
}

pub(crate) fn parse(body: &[u8], book: &NonceBook) -> Result<Turn, Malformed> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Malformed(error.to_string()))?;
    let mut conversation = Vec::with_capacity(body.messages.len());
    for said in &body.messages {
        let role = match said.role.as_ref() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            other => return Err(Malformed(format!("`{other}` is no role of a message"))),
        };
        let text = said.text()?;
        let mut message = message(role, &text, book);
        if let Some(calls) = said.tool_calls {
            for mark in book.find(calls.get()) {
                if !message.marks.contains(&mark) {
                    message.marks.push(mark);
                }
            }
        }
        conversation.push(message);
    }
    let tools = body.tools.unwrap_or_default();
    Ok(Turn {
        conversation,
        tools: tools.len(),
        shell: ShellTool::among(&tools, |tool| {
            let function = &tool["function"];
            Some((function["name"].as_str()?, &function["parameters"]))
        }),
        model: body.model.into_owned(),
        stream: body.stream.unwrap_or(false),
        include_usage: body
            .stream_options
            .is_some_and(|options| options.include_usage),
        json: body.response_format.is_some(),
    })
}

fn tool_call(tool: &ShellTool, command: &str, seq: u64) -> Value {
    json!({
        "id": format!("call_{seq}"),
        "type": "function",
        "function": {
            "name": tool.name,
            "arguments": tool.call(command).to_string(),
        }
    })
}

pub(crate) fn reply(turn: &Turn, answer: &Answer, seq: u64) -> Reply {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120});
    let id = format!("chatcmpl-{seq}");
    let (message, finish) = match answer {
        Answer::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Answer::Run { tool, command } => (
            json!({
                "role": "assistant",
                "content": null,
                "tool_calls": [tool_call(tool, command, seq)]
            }),
            "tool_calls",
        ),
    };
    if !turn.stream {
        let body = json!({
            "id": id,
            "object": "chat.completion",
            "created": 0,
            "model": turn.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
        });
        return Reply::json(&body);
    }
    let chunk = |choices: Value, usage: Value| {
        let body = json!({
            "id": id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": turn.model,
            "choices": choices,
            "usage": usage,
        });
        Bytes::from(format!("data: {body}\n\n"))
    };
    let delta = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        chunk(choices, Value::Null)
    };
    let mut pieces = vec![delta(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    match answer {
        Answer::Text(text) => {
            let deltas = halves(text).map(|part| delta(json!({"content": part}), Value::Null));
            pieces.extend(deltas);
        }
        Answer::Run { tool, command } => {
            let mut call = tool_call(tool, command, seq);
            call["index"] = json!(0);
            pieces.push(delta(json!({"tool_calls": [call]}), Value::Null));
        }
    }
    pieces.push(delta(json!({}), json!(finish)));
    if turn.include_usage {
        pieces.push(chunk(json!([]), usage));
    }
    pieces.push(Bytes::from_static(b"data: [DONE]\n\n"));
    Reply::events(pieces)
}

/// An error as the API words it (<https://platform.openai.com/docs/guides/error-codes>).
pub(crate) fn error(status: StatusCode, message: &str) -> Value {
    let kind = match status.as_u16() {
        429 => "rate_limit_exceeded",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

pub(crate) fn models() -> Value {
    let model = json!({"id": "mock-model", "object": "model", "created": 0, "owned_by": "reprise"});
    json!({"object": "list", "data": [model]})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reprise_model::Mark;

    use super::*;

    fn book() -> NonceBook {
        NonceBook::draw()
    }

    #[test]
    fn reads_strings_parts_and_tool_calls() {
        let book = book();
        let (prompt, tool) = (
            book.nonce(Mark::Prompt),
            book.nonce(Mark::Tool { epoch: 0 }),
        );
        let body = json!({
            "model": "m",
            "stream": true,
            "messages": [
                {"role": "developer", "content": "be good"},
                {"role": "user", "content": [{"type": "text", "text": format!("do {prompt}")}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "shell", "arguments": format!("{{\"command\":\"echo {tool}\"}}")}}
                ]},
                {"role": "tool", "tool_call_id": "1", "content": tool},
            ],
            "tools": [{"type": "function", "function": {"name": "developer__shell", "parameters": {"properties": {"command": {"type": "string"}}}}}],
        });
        let turn = parse(body.to_string().as_bytes(), &book).expect("it is well formed");
        let roles: Vec<Role> = turn.conversation.iter().map(|said| said.role).collect();
        assert_eq!(
            roles,
            [Role::System, Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(turn.conversation[1].marks, [Mark::Prompt]);
        assert_eq!(turn.conversation[2].marks, [Mark::Tool { epoch: 0 }]);
        assert_eq!(turn.conversation[3].marks, [Mark::Tool { epoch: 0 }]);
        assert_eq!(
            turn.shell.expect("a shell is offered").name,
            "developer__shell"
        );
        assert!(turn.stream);
    }

    #[test]
    fn a_streamed_reply_says_the_same_as_a_whole_one() {
        let turn = |stream| Turn {
            conversation: vec![],
            tools: 0,
            shell: None,
            model: "m".to_owned(),
            stream,
            include_usage: true,
            json: false,
        };
        let answer = Answer::Text("größer als zuvor".to_owned());
        let streamed: String = reply(&turn(true), &answer, 1)
            .pieces
            .iter()
            .filter_map(|piece| {
                let line = std::str::from_utf8(piece).expect("events are text");
                let event: Value =
                    serde_json::from_str(line.strip_prefix("data: ")?.trim()).ok()?;
                Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned())
            })
            .collect();
        let whole = reply(&turn(false), &answer, 1);
        let whole: Value = serde_json::from_slice(&whole.pieces[0]).expect("it is JSON");
        assert_eq!(whole["choices"][0]["message"]["content"], *streamed);
    }

    proptest! {
        #[test]
        fn never_panics_on_any_body(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&body, &book());
        }

        #[test]
        fn never_panics_on_any_message(role in ".{0,9}", content in ".*", cut in 0usize..200) {
            let body = json!({"messages": [{"role": role, "content": content}]}).to_string();
            let _ = parse(&body.as_bytes()[..cut.min(body.len())], &book());
            let _ = parse(body.as_bytes(), &book());
        }
    }
}
