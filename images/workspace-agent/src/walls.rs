//! Tries what a workspace's network lets through.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::plain;

/// How long what shall be open may take to open: its image may have to be pulled.
const OPENING: Duration = Duration::from_secs(120);

/// How long what shall be shut may take to shut: rules reach a new pod a moment after it.
const SHUTTING: Duration = Duration::from_secs(6);

/// How long one attempt may take: a packet that is dropped is not answered at all.
const ATTEMPT: Duration = Duration::from_millis(1500);

/// How long to wait between attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Prints whether `open` is reached, and whether `shut` still is when the network has had its time.
pub(crate) fn main(open: &str, shut: &str) -> Result<(), reqwest::Error> {
    let client = plain::client(Some(ATTEMPT))?;
    let reached = |url: &str| client.get(url).send().is_ok();
    let until = |wanted: bool, url: &str, patience: Duration| {
        let began = Instant::now();
        loop {
            let is = reached(url);
            if is == wanted || began.elapsed() > patience {
                return is;
            }
            std::thread::sleep(PAUSE);
        }
    };
    let open = until(true, open, OPENING);
    let shut = until(false, shut, SHUTTING);
    println!("{}", json!({ "open": open, "shut": shut }));
    Ok(())
}
