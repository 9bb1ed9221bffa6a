//! Downloads that are only kept when they are what was pinned.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use sha2::{Digest, Sha256, Sha512};
use thiserror::Error;

/// What a download must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pin {
    /// SHA-256 in hex, as projects publish it.
    Sha256(&'static str),
    /// A subresource integrity of SHA-512, as npm's registry publishes it.
    Integrity(String),
}

/// Why a download is not there.
#[derive(Debug, Error)]
pub(super) enum DownloadError {
    /// No answer, or not the file.
    #[error("{url}: {}", innermost(source))]
    Http {
        /// From where.
        url: String,
        /// What went wrong.
        source: reqwest::Error,
    },
    /// Another file than was pinned.
    #[error("{url} is not what was pinned: it has {actual}, the pin is {pinned}")]
    Other {
        /// From where.
        url: String,
        /// What it has.
        actual: String,
        /// What was pinned.
        pinned: String,
    },
    /// It could not be written.
    #[error("cannot write the download: {0}")]
    Io(#[from] std::io::Error),
}

/// A request's error is a chain whose last link says what happened.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Downloads `url` to `file` and compares it with its pin.
pub(super) async fn fetch(
    url: &str,
    authorization: Option<&str>,
    pin: &Pin,
    file: &Path,
) -> Result<(), DownloadError> {
    let http = |source| DownloadError::Http {
        url: url.to_owned(),
        source,
    };
    let client = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(Duration::from_secs(60))
        .user_agent(concat!("reprise/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(http)?;
    let mut request = client.get(url);
    if let Some(authorization) = authorization {
        request = request.header(reqwest::header::AUTHORIZATION, authorization);
    }
    let response = request
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(http)?;
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(http)?;
        match pin {
            Pin::Sha256(_) => sha256.update(&piece),
            Pin::Integrity(_) => sha512.update(&piece),
        }
        out.write_all(&piece)?;
    }
    out.flush()?;
    let (actual, pinned) = match pin {
        Pin::Sha256(pinned) => {
            let hex: String = sha256
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            (hex, (*pinned).to_owned())
        }
        Pin::Integrity(pinned) => (
            format!("sha512-{}", STANDARD.encode(sha512.finalize())),
            pinned.clone(),
        ),
    };
    if actual == pinned {
        Ok(())
    } else {
        Err(DownloadError::Other {
            url: url.to_owned(),
            actual,
            pinned,
        })
    }
}
