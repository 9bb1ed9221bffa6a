//! What a pod's container writes, by line, through connections that break.

use std::time::Duration;

use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use tokio::sync::mpsc;

use super::objects::MAIN;
use super::pods::{Seen, look};

/// How long to wait before a log is asked for again.
const PAUSE: Duration = Duration::from_millis(300);

/// Sends each line once, until the container has ended and all that it wrote was read, or the pod is gone.
pub(super) async fn follow(pods: Api<Pod>, pod: String, again: i32, lines: mpsc::Sender<String>) {
    let params = LogParams {
        container: Some(MAIN.to_owned()),
        follow: true,
        ..Default::default()
    };
    let mut taken = 0;
    loop {
        let ended = matches!(pods.get_opt(&pod).await, Ok(found) if over(found.as_ref(), again));
        // A stream that begins again begins at the first line.
        let mut at = 0;
        if let Ok(stream) = pods.log_stream(&pod, &params).await {
            let mut read = stream.lines();
            while let Ok(Some(line)) = read.try_next().await {
                at += 1;
                if at <= taken {
                    continue;
                }
                taken = at;
                if lines.send(line).await.is_err() {
                    return;
                }
            }
        }
        // Read to its end after the container's: there is no more.
        if ended || matches!(pods.get_opt(&pod).await, Ok(None)) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether the run of the container whose log this is has ended.
fn over(pod: Option<&Pod>, again: i32) -> bool {
    match look(pod) {
        Seen::Running(times) => times > again,
        Seen::Ended(_) | Seen::Gone | Seen::Hopeless(_) => true,
        Seen::Coming | Seen::NoPlace(_) => false,
    }
}
