//! A turn against the model, in the protocol of the agent that is played.

use std::time::Duration;

use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};
use thiserror::Error;

use crate::conversation::Said;

/// The address of the model, set by whoever starts a stand-in.
const GATEWAY: &str = "STAND_IN_GATEWAY";

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum ModelError {
    /// Nobody said where the model is.
    #[error(
        "{GATEWAY} is not set: it is the address of the model's API, such as http://127.0.0.1:8080"
    )]
    NoModel,
    /// The model does not answer.
    #[error("the model does not answer: {0}")]
    Silent(#[from] reqwest::Error),
    /// The answer is none.
    #[error("the model's answer is none: {0}")]
    Answer(Value),
}

/// How an agent speaks to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat with tools.
    Chat,
    /// `OpenAI` Chat, streamed and without tools, as Aider speaks it.
    PlainChat,
    /// Gemini.
    Gemini,
}

/// The model.
pub(crate) struct Model {
    client: Client,
    base: String,
    protocol: Protocol,
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]})
}

impl Model {
    /// The model whose address a stand-in is told.
    pub(crate) fn find(protocol: Protocol) -> Result<Self, ModelError> {
        let base = std::env::var(GATEWAY).map_err(|_| ModelError::NoModel)?;
        Self::at(&base, protocol)
    }

    /// The model at an address.
    pub(crate) fn at(base: &str, protocol: Protocol) -> Result<Self, ModelError> {
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()?;
        Ok(Self {
            client,
            base: base.trim_end_matches('/').to_owned(),
            protocol,
        })
    }

    /// Asks for a title, as agents do beside their turns: it offers no tools.
    pub(crate) fn title(&self, of: &str) -> Result<(), ModelError> {
        let body = json!({
            "model": "mock-model",
            "messages": [{"role": "user", "content": format!("Write a title for this: {of}")}],
        });
        let request = self
            .client
            .post(format!("{}/v1/chat/completions", self.base))
            .header("content-type", "application/json")
            .body(body.to_string());
        crate::retry::text(&request)?;
        Ok(())
    }

    /// What the model says next: words, or a command to run.
    pub(crate) fn next(&self, conversation: &[Said]) -> Result<Said, ModelError> {
        let (path, body) = self.request(conversation);
        let request: RequestBuilder = self
            .client
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string());
        let text = crate::retry::text(&request)?;
        let answer = match self.protocol {
            Protocol::PlainChat => Some(Said::model(streamed(&text))),
            _ => serde_json::from_str(&text)
                .ok()
                .and_then(|answer| self.read(&answer)),
        };
        answer.ok_or_else(|| ModelError::Answer(Value::String(text)))
    }

    fn request(&self, conversation: &[Said]) -> (&'static str, Value) {
        let each =
            |form: fn(&Said) -> Value| -> Vec<Value> { conversation.iter().map(form).collect() };
        match self.protocol {
            Protocol::Anthropic => (
                "/v1/messages",
                json!({
                    "model": "mock-model", "max_tokens": 1000,
                    "messages": each(anthropic),
                    "tools": [{"name": "Bash", "description": "Run a command.", "input_schema": schema()}],
                }),
            ),
            Protocol::Responses => (
                "/v1/responses",
                json!({
                    "model": "mock-model",
                    "input": each(responses),
                    "tools": [{"type": "function", "name": "shell", "description": "Run a command.", "parameters": schema()}],
                }),
            ),
            Protocol::Chat => (
                "/v1/chat/completions",
                json!({
                    "model": "mock-model",
                    "messages": each(chat),
                    "tools": [{"type": "function", "function": {"name": "shell", "description": "Run a command.", "parameters": schema()}}],
                }),
            ),
            Protocol::PlainChat => (
                "/v1/chat/completions",
                json!({"model": "mock-model", "messages": each(chat), "stream": true}),
            ),
            Protocol::Gemini => (
                "/v1beta/models/mock-model:streamGenerateContent",
                json!({
                    "contents": each(gemini),
                    "tools": [{"functionDeclarations": [{"name": "run_shell_command", "description": "Run a command.", "parametersJsonSchema": schema()}]}],
                }),
            ),
        }
    }

    /// Reads a whole answer of the protocol.
    fn read(&self, answer: &Value) -> Option<Said> {
        let call = |id: &Value, arguments: &Value| {
            Some(Said::Call {
                id: id.as_str().unwrap_or("call").to_owned(),
                command: arguments["command"].as_str()?.to_owned(),
            })
        };
        let words = |text: &Value| Some(Said::model(text.as_str()?));
        match self.protocol {
            Protocol::Anthropic => {
                let block = &answer["content"][0];
                match block["type"].as_str()? {
                    "tool_use" => call(&block["id"], &block["input"]),
                    _ => words(&block["text"]),
                }
            }
            Protocol::Responses => {
                let item = &answer["output"][0];
                match item["type"].as_str()? {
                    "function_call" => {
                        let arguments = serde_json::from_str(item["arguments"].as_str()?).ok()?;
                        call(&item["call_id"], &arguments)
                    }
                    _ => words(&item["content"][0]["text"]),
                }
            }
            Protocol::Chat | Protocol::PlainChat => {
                let message = &answer["choices"][0]["message"];
                let asked = &message["tool_calls"][0];
                if asked.is_null() {
                    return words(&message["content"]);
                }
                let arguments = asked["function"]["arguments"].as_str()?;
                call(&asked["id"], &serde_json::from_str(arguments).ok()?)
            }
            Protocol::Gemini => {
                let parts: Vec<&Value> = answer
                    .as_array()?
                    .iter()
                    .map(|chunk| &chunk["candidates"][0]["content"]["parts"][0])
                    .collect();
                if let Some(asked) = parts
                    .iter()
                    .map(|part| &part["functionCall"])
                    .find(|asked| asked.is_object())
                {
                    return call(&json!("call"), &asked["args"]);
                }
                let text: String = parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                Some(Said::model(text))
            }
        }
    }
}

/// The words of a streamed answer of `OpenAI` Chat.
fn streamed(text: &str) -> String {
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

fn anthropic(said: &Said) -> Value {
    match said {
        Said::User { text } => json!({"role": "user", "content": text}),
        Said::Model { text } => json!({"role": "assistant", "content": text}),
        Said::Call { id, command } => json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]}),
        Said::Output { id, text } => json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text}]}),
    }
}

fn responses(said: &Said) -> Value {
    match said {
        Said::User { text } => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        }
        Said::Model { text } => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        }
        Said::Call { id, command } => {
            json!({"type": "function_call", "call_id": id, "name": "shell",
            "arguments": json!({"command": command}).to_string()})
        }
        Said::Output { id, text } => {
            json!({"type": "function_call_output", "call_id": id, "output": text})
        }
    }
}

fn chat(said: &Said) -> Value {
    match said {
        Said::User { text } => json!({"role": "user", "content": text}),
        Said::Model { text } => json!({"role": "assistant", "content": text}),
        Said::Call { id, command } => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "shell",
             "arguments": json!({"command": command}).to_string()}}]}),
        Said::Output { id, text } => json!({"role": "tool", "tool_call_id": id, "content": text}),
    }
}

fn gemini(said: &Said) -> Value {
    match said {
        Said::User { text } => json!({"role": "user", "parts": [{"text": text}]}),
        Said::Model { text } => json!({"role": "model", "parts": [{"text": text}]}),
        Said::Call { command, .. } => json!({"role": "model", "parts": [
            {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}]}),
        Said::Output { text, .. } => json!({"role": "user", "parts": [
            {"functionResponse": {"name": "run_shell_command", "response": {"output": text}}}]}),
    }
}
