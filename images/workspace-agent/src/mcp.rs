//! `coder exp mcp server`: the model context protocol over standard input and output, one JSON-RPC message a line
//! (<https://modelcontextprotocol.io/specification/2025-06-18/basic/transports>), with the tool by which agents
//! report their tasks.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

/// The protocol version offered to a client that names none.
const VERSION: &str = "2025-06-18";

const REPORT: &str = "coder_report_task";

fn tools(allowed: &[String]) -> Vec<Value> {
    let report = json!({
        "name": REPORT,
        "description": "Report progress on the task.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "summary": {"type": "string", "description": "What is being done, in a sentence."},
                "link": {"type": "string", "description": "Where more can be seen."},
                "state": {"type": "string", "enum": ["working", "idle", "failure", "complete"]}
            },
            "required": ["summary", "link", "state"]
        }
    });
    [report]
        .into_iter()
        .filter(|tool| allowed.is_empty() || allowed.iter().any(|name| tool["name"] == **name))
        .collect()
}

/// Serves until standard input ends.
///
/// # Errors
/// If standard input or output breaks.
pub(crate) fn serve(allowed: &[String], app: Option<&str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        if let Some(reply) = answer(&line, allowed, app) {
            writeln!(out, "{reply}")?;
            out.flush()?;
        }
    }
    Ok(())
}

/// The reply to one message; `None` to a notification.
fn answer(line: &str, allowed: &[String], app: Option<&str>) -> Option<Value> {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Some(error(&Value::Null, -32700, "not JSON"));
    };
    let id = message.get("id")?.clone();
    let method = message["method"].as_str().unwrap_or_default();
    let result = match method {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"].as_str().unwrap_or(VERSION),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "coder", "version": env!("CARGO_PKG_VERSION")}
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools(allowed) }),
        "tools/call" if message["params"]["name"] == REPORT => {
            let app = app.unwrap_or("no app");
            json!({"content": [{"type": "text", "text": format!("reported for {app}")}]})
        }
        "tools/call" => return Some(error(&id, -32602, "no such tool")),
        _ => return Some(error(&id, -32601, "no such method")),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_the_report_tool() {
        let reply = answer(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            &[],
            None,
        )
        .expect("a request has a reply");
        assert_eq!(reply["result"]["tools"][0]["name"], REPORT);
    }

    #[test]
    fn says_nothing_to_a_notification() {
        let line = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(answer(line, &[], None), None);
    }

    #[test]
    fn answers_nonsense_with_an_error() {
        assert_eq!(
            answer("{", &[], None).expect("a reply")["error"]["code"],
            -32700
        );
    }
}
