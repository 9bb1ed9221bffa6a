//! `OpenAI` Responses (<https://platform.openai.com/docs/api-reference/responses>), streamed and not.

use std::borrow::Cow;

use reprise_model::{Message, NonceBook, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::{
    Answer, Malformed, Reply, ShellTool, Turn, halves, message, named_event as event,
};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

/// An item of the input: a message has a role, a call or its result a type.
#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    action: Value,
    #[serde(default)]
    output: Value,
}

/// A string's text, or the text of its parts.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            texts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn spoken(item: &Item, book: &NonceBook) -> Result<Option<Message>, Malformed> {
    let said = |role, text: &str| Ok(Some(message(role, text, book)));
    match (item.kind.as_str(), item.role.as_deref()) {
        ("" | "message", Some(role)) => {
            let role = match role {
                "system" | "developer" => Role::System,
                "user" => Role::User,
                "assistant" => Role::Assistant,
                other => return Err(Malformed(format!("`{other}` is no role of a message"))),
            };
            said(role, &words(&item.content))
        }
        ("" | "message", None) => Err(Malformed("a message has no role".to_owned())),
        ("function_call", _) => said(Role::Assistant, &words(&item.arguments)),
        ("custom_tool_call", _) => said(Role::Assistant, &words(&item.input)),
        ("local_shell_call", _) => said(Role::Assistant, &words(&item.action)),
        (kind, _) if kind.ends_with("_output") => said(Role::Tool, &words(&item.output)),
        // Reasoning and references to earlier items hold nothing of ours.
        _ => Ok(None),
    }
}

pub(crate) fn parse(body: &[u8], book: &NonceBook) -> Result<Turn, Malformed> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Malformed(error.to_string()))?;
    let wrong = |error| Malformed(format!("the input: {error}"));
    let conversation = if body.input.get().starts_with('"') {
        let text: Cow<'_, str> = serde_json::from_str(body.input.get()).map_err(wrong)?;
        vec![message(Role::User, &text, book)]
    } else {
        let items: Vec<Item> = serde_json::from_str(body.input.get()).map_err(wrong)?;
        let mut conversation = Vec::with_capacity(items.len());
        for item in &items {
            conversation.extend(spoken(item, book)?);
        }
        conversation
    };
    let tools = body.tools.unwrap_or_default();
    Ok(Turn {
        conversation,
        tools: tools.len(),
        shell: ShellTool::among(&tools, |tool| {
            (tool["type"] == "function").then_some(())?;
            Some((tool["name"].as_str()?, &tool["parameters"]))
        }),
        model: body.model.into_owned(),
        stream: body.stream.unwrap_or(false),
        include_usage: true,
        json: body
            .text
            .is_some_and(|text| text.get().contains("json_schema")),
    })
}

pub(crate) fn reply(turn: &Turn, answer: &Answer, seq: u64) -> Reply {
    let item = match answer {
        Answer::Text(text) => json!({
            "id": format!("msg_{seq}"),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Answer::Run { tool, command } => json!({
            "id": format!("fc_{seq}"),
            "type": "function_call",
            "call_id": format!("call_{seq}"),
            "name": tool.name,
            "arguments": tool.call(command).to_string(),
            "status": "completed",
        }),
    };
    let whole = |status: &str, output: Value, usage: Value| {
        json!({
            "id": format!("resp_{seq}"),
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": turn.model,
            "output": output,
            "usage": usage,
        })
    };
    let usage = json!({
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 120,
    });
    let complete = whole("completed", json!([item]), usage);
    if !turn.stream {
        return Reply::json(&complete);
    }
    // https://platform.openai.com/docs/api-reference/responses-streaming
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let id = &item["id"];
    let mut events = vec![
        json!({"type": "response.created", "response": whole("in_progress", json!([]), Value::Null)}),
    ];
    match answer {
        Answer::Text(text) => {
            begun["content"] = json!([]);
            events.push(
                json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
            );
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            events.push(json!({"type": "response.content_part.added", "item_id": id, "output_index": 0, "content_index": 0, "part": part("")}));
            events.extend(halves(text).map(|half| {
                json!({"type": "response.output_text.delta", "item_id": id, "output_index": 0, "content_index": 0, "delta": half})
            }));
            events.push(json!({"type": "response.output_text.done", "item_id": id, "output_index": 0, "content_index": 0, "text": text}));
            events.push(json!({"type": "response.content_part.done", "item_id": id, "output_index": 0, "content_index": 0, "part": part(text)}));
        }
        Answer::Run { .. } => {
            let arguments = item["arguments"].as_str().unwrap_or_default();
            begun["arguments"] = json!("");
            events.push(
                json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
            );
            events.extend(halves(arguments).map(|half| {
                json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": 0, "delta": half})
            }));
            events.push(json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": 0, "arguments": arguments}));
        }
    }
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": complete}));
    let pieces = events
        .iter_mut()
        .enumerate()
        .map(|(number, data)| {
            data["sequence_number"] = json!(number);
            event(data)
        })
        .collect();
    Reply::events(pieces)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reprise_model::Mark;

    use super::*;

    #[test]
    fn calls_and_their_results_stand_beside_messages() {
        let book = NonceBook::draw();
        let tool = book.nonce(Mark::Tool { epoch: 0 });
        let body = json!({
            "model": "m", "stream": true,
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be good"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": book.nonce(Mark::Prompt)}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"type": "function_call", "name": "exec_command", "call_id": "1", "arguments": format!("{{\"cmd\":\"echo {tool}\"}}")},
                {"type": "function_call_output", "call_id": "1", "output": tool},
            ],
            "tools": [{"type": "web_search"}, {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {"type": "array"}}}}],
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
                (Role::System, vec![]),
                (Role::User, vec![Mark::Prompt]),
                (Role::Assistant, vec![Mark::Tool { epoch: 0 }]),
                (Role::Tool, vec![Mark::Tool { epoch: 0 }]),
            ]
        );
        let call = turn.shell.expect("exec_command runs commands").call("ls");
        assert_eq!(call, json!({"cmd": ["bash", "-lc", "ls"]}));
    }

    #[test]
    fn a_bare_string_is_the_users() {
        let turn = parse(br#"{"model": "m", "input": "hello"}"#, &NonceBook::draw());
        let turn = turn.expect("it is well formed");
        assert_eq!(turn.conversation[0].role, Role::User);
        assert_eq!(turn.conversation[0].excerpt, "hello");
    }

    proptest! {
        #[test]
        fn never_panics_on_any_item(kind in "[a-z_]{0,22}", text in ".*", cut in 0usize..300) {
            let body = json!({"input": [{"type": kind, "role": "user", "content": text, "output": text}]}).to_string();
            let _ = parse(body.as_bytes(), &NonceBook::draw());
            let _ = parse(&body.as_bytes()[..cut.min(body.len())], &NonceBook::draw());
        }
    }
}
