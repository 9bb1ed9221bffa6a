//! One HTTP request from inside the workspace, so that no port has to be published.

use std::io::{self, Read};
use std::time::Duration;

use serde_json::json;
use thiserror::Error;

use crate::plain;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The method is none.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// The body could not be read.
    #[error("cannot read the body from standard input: {0}")]
    Body(#[from] io::Error),
    /// The client cannot be made.
    #[error("cannot send requests: {0}")]
    Client(reqwest::Error),
}

pub(crate) fn main(method: &str, url: &str, timeout: u64) -> Result<(), RequestError> {
    let method: reqwest::Method = method
        .parse()
        .map_err(|_| RequestError::Method(method.to_owned()))?;
    let mut body = Vec::new();
    io::stdin().read_to_end(&mut body)?;
    let client = plain::client(Some(Duration::from_secs(timeout))).map_err(RequestError::Client)?;
    let mut request = client.request(method, url);
    if !body.is_empty() {
        request = request
            .header("content-type", "application/json")
            .body(body);
    }
    let answer = request
        .send()
        .and_then(|response| Ok((response.status().as_u16(), response.text()?)));
    println!(
        "{}",
        match answer {
            Ok((status, body)) => json!({ "answered": { "status": status, "body": body } }),
            // What was never taken may be sent again; what was taken and not answered may not.
            Err(error) if error.is_connect() => json!({ "not_taken": error.to_string() }),
            Err(error) if error.is_timeout() =>
                json!({ "not_answered": format!("no answer within {timeout} s") }),
            Err(error) => json!({ "not_answered": error.to_string() }),
        }
    );
    Ok(())
}
