//! A model that refuses for a moment, or whose reply breaks off, is asked again, as every agent does.

use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};
use reqwest::blocking::RequestBuilder;

/// How often it is asked again.
const TIMES: usize = 4;

/// The body of a good answer.
pub(crate) fn text(request: &RequestBuilder) -> Result<String, reqwest::Error> {
    let ask = || {
        request
            .try_clone()
            .expect("the body is no stream")
            .send()?
            .error_for_status()?
            .text()
    };
    // What is wrong with the request itself is wrong the next time, too.
    let passes = |error: &reqwest::Error| {
        error
            .status()
            .is_none_or(|status| status.as_u16() == 429 || status.is_server_error())
    };
    ask.retry(
        ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_times(TIMES),
    )
    .when(passes)
    .call()
}
