//! One HTTP request from inside the workspace, so that no port has to be published.

use std::io::{self, Read};
use std::time::Duration;

use serde_json::json;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The method is none.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// The body could not be read.
    #[error("cannot read the body from standard input: {0}")]
    Body(#[from] io::Error),
    /// Nobody answered.
    #[error("no answer from {url}: {source}")]
    NoAnswer {
        /// Where to.
        url: String,
        /// Why not.
        source: reqwest::Error,
    },
}

pub(crate) fn main(method: &str, url: &str, timeout: u64) -> Result<(), RequestError> {
    let method: reqwest::Method = method
        .parse()
        .map_err(|_| RequestError::Method(method.to_owned()))?;
    let mut body = Vec::new();
    io::stdin().read_to_end(&mut body)?;
    let no_answer = |source| RequestError::NoAnswer {
        url: url.to_owned(),
        source,
    };
    let client = reqwest::blocking::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(timeout))
        .build()
        .map_err(no_answer)?;
    let mut request = client.request(method, url);
    if !body.is_empty() {
        request = request
            .header("content-type", "application/json")
            .body(body);
    }
    let response = request.send().map_err(no_answer)?;
    let status = response.status().as_u16();
    let body = response.text().map_err(no_answer)?;
    println!("{}", json!({ "status": status, "body": body }));
    Ok(())
}
