//! Gemini `generateContent` and `streamGenerateContent` (<https://ai.google.dev/api/generate-content>).

use axum::http::StatusCode;
use bytes::Bytes;
use reprise_model::{Message, NonceBook, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::{Answer, Malformed, Reply, ShellTool, Turn, halves, messages};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Content>,
    #[serde(borrow, default)]
    tools: Vec<Tools<'a>>,
    #[serde(default)]
    generation_config: GenerationConfig,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(default)]
    response_mime_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    #[serde(borrow, default)]
    function_declarations: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    function_call: Option<Value>,
    #[serde(default)]
    function_response: Option<Value>,
}

/// Splits a content where its parts change from words to functions' responses: both come as the user's.
fn spoken(content: &Content, book: &NonceBook) -> Result<Vec<Message>, Malformed> {
    let role = match content.role.as_deref() {
        None | Some("user") => Role::User,
        Some("model") => Role::Assistant,
        Some("function") => Role::Tool,
        Some("system") => Role::System,
        Some(other) => return Err(Malformed(format!("`{other}` is no role of a content"))),
    };
    let pieces = content.parts.iter().filter_map(|part| match part {
        Part {
            function_response: Some(response),
            ..
        } => Some((Role::Tool, response.to_string())),
        Part {
            function_call: Some(call),
            ..
        } => Some((role, call.to_string())),
        Part {
            text: Some(text), ..
        } => Some((role, text.clone())),
        _ => None,
    });
    Ok(messages(pieces, book))
}

/// What a path says: the model, and whether the reply shall be streamed, as events or as an array.
fn asked(path: &str) -> (&str, bool, bool) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let last = path.rsplit('/').next().unwrap_or_default();
    let (model, action) = last.rsplit_once(':').unwrap_or((last, ""));
    let events = query.split('&').any(|pair| pair == "alt=sse");
    (model, action == "streamGenerateContent", events)
}

pub(crate) fn parse(path: &str, body: &[u8], book: &NonceBook) -> Result<Turn, Malformed> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Malformed(error.to_string()))?;
    let (model, stream, _) = asked(path);
    let mut conversation = Vec::with_capacity(body.contents.len());
    for content in &body.contents {
        conversation.extend(spoken(content, book)?);
    }
    let tools: Vec<&RawValue> = body
        .tools
        .iter()
        .flat_map(|tools| tools.function_declarations.iter().copied())
        .collect();
    Ok(Turn {
        conversation,
        tools: tools.len(),
        shell: ShellTool::among(&tools, |tool| {
            let schema = ["parametersJsonSchema", "parameters"]
                .iter()
                .map(|name| &tool[*name])
                .find(|schema| schema.is_object())?;
            Some((tool["name"].as_str()?, schema))
        }),
        model: model.to_owned(),
        stream,
        include_usage: true,
        json: body
            .generation_config
            .response_mime_type
            .is_some_and(|kind| kind == "application/json"),
    })
}

pub(crate) fn reply(path: &str, turn: &Turn, answer: &Answer, seq: u64) -> Reply {
    let (_, stream, events) = asked(path);
    let chunk = |part: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
            "modelVersion": turn.model,
            "responseId": format!("resp-{seq}"),
        })
    };
    let call = |tool: &ShellTool, command: &str| json!({"functionCall": {"name": tool.name, "args": tool.call(command)}});
    let chunks: Vec<Value> = match answer {
        Answer::Text(text) if stream => {
            let [first, second] = halves(text);
            vec![
                chunk(json!({"text": first}), None),
                chunk(json!({"text": second}), Some("STOP")),
            ]
        }
        Answer::Text(text) => vec![chunk(json!({"text": text}), Some("STOP"))],
        Answer::Run { tool, command } => vec![chunk(call(tool, command), Some("STOP"))],
    };
    match (stream, events) {
        (true, true) => Reply::events(
            chunks
                .iter()
                .map(|chunk| Bytes::from(format!("data: {chunk}\r\n\r\n")))
                .collect(),
        ),
        (true, false) => Reply::json(&Value::Array(chunks)),
        (false, _) => Reply::json(&chunks[0]),
    }
}

/// An error as the API words it (<https://ai.google.dev/gemini-api/docs/troubleshooting>).
pub(crate) fn error(status: StatusCode, message: &str) -> Value {
    let word = match status.as_u16() {
        401 => "UNAUTHENTICATED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    json!({"error": {"code": status.as_u16(), "message": message, "status": word}})
}

pub(crate) fn models() -> Value {
    json!({"models": [{
        "name": "models/mock-model", "displayName": "Mock",
        "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }]})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reprise_model::Mark;

    use super::*;

    const STREAM: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";

    #[test]
    fn functions_responses_are_no_words_of_the_users() {
        let book = NonceBook::draw();
        let tool = book.nonce(Mark::Tool { epoch: 0 });
        let body = json!({
            "contents": [
                {"role": "user", "parts": [{"text": "<session_context>"}, {"text": book.nonce(Mark::Prompt)}]},
                {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {"command": format!("echo {tool}")}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command", "response": {"output": tool}}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": {"properties": {"command": {"type": "string"}}}}]}],
        });
        let turn = parse(STREAM, body.to_string().as_bytes(), &book).expect("it is well formed");
        let said: Vec<_> = turn
            .conversation
            .iter()
            .map(|message| (message.role, message.marks.clone()))
            .collect();
        assert_eq!(
            said,
            [
                (Role::User, vec![Mark::Prompt]),
                (Role::Assistant, vec![Mark::Tool { epoch: 0 }]),
                (Role::Tool, vec![Mark::Tool { epoch: 0 }]),
            ]
        );
        assert_eq!(turn.model, "gemini-2.5-flash");
        assert!(turn.stream);
    }

    #[test]
    fn the_path_says_how_to_answer() {
        assert_eq!(asked(STREAM), ("gemini-2.5-flash", true, true));
        let plain = "/v1beta/models/a:b:generateContent";
        assert_eq!(asked(plain), ("a:b", false, false));
    }

    proptest! {
        #[test]
        fn never_panics_on_any_part(role in "[a-z]{0,6}", text in ".*", path in ".*", cut in 0usize..300) {
            let body = json!({"contents": [{"role": role, "parts": [{"text": text}, {"functionCall": text}]}]}).to_string();
            let _ = parse(&path, body.as_bytes(), &NonceBook::draw());
            let _ = parse(STREAM, &body.as_bytes()[..cut.min(body.len())], &NonceBook::draw());
        }
    }
}
