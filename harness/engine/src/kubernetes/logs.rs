//! What a pod's container writes, by line, through connections that break.

use std::time::Duration;

use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use tokio::sync::mpsc;

use super::objects::MAIN;
use super::pods::{Seen, look, main_container};

/// How long to wait before a log is asked for again.
const PAUSE: Duration = Duration::from_millis(300);

/// Sends each line that the container wrote in its `again`-th life again, once, until that has ended and all of it was
/// read, or the pod is gone.
pub(super) async fn follow(pods: Api<Pod>, pod: String, again: i32, lines: mpsc::Sender<String>) {
    let mut taken = 0;
    loop {
        let life = match pods.get_opt(&pod).await {
            Ok(found) => life(found.as_ref(), again),
            // Asked again below.
            Err(_) => Life::Goes,
        };
        if life == Life::Lost {
            return;
        }
        let params = LogParams {
            container: Some(MAIN.to_owned()),
            follow: life == Life::Goes,
            previous: life == Life::Before,
            ..Default::default()
        };
        if read(&pods, &pod, &params, &mut taken, &lines)
            .await
            .is_err()
        {
            return;
        }
        // What was read after its end is all there is.
        if life != Life::Goes {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Nobody takes the lines any more.
struct NobodyThere;

/// Reads a log that begins at its first line, and sends the lines after the first `taken`. A connection that breaks is no
/// error: the next begins again.
async fn read(
    pods: &Api<Pod>,
    pod: &str,
    params: &LogParams,
    taken: &mut usize,
    lines: &mpsc::Sender<String>,
) -> Result<(), NobodyThere> {
    let Ok(stream) = pods.log_stream(pod, params).await else {
        return Ok(());
    };
    let mut at = 0;
    let mut read = stream.lines();
    while let Ok(Some(line)) = read.try_next().await {
        at += 1;
        if at > *taken {
            *taken = at;
            lines.send(line).await.map_err(|_| NobodyThere)?;
        }
    }
    Ok(())
}

/// What has become of one life of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It goes on, or has not begun.
    Goes,
    /// It has ended.
    Ended,
    /// It has ended, and the next has begun.
    Before,
    /// Nothing of it can be read any more.
    Lost,
}

fn life(pod: Option<&Pod>, again: i32) -> Life {
    let times = pod
        .and_then(main_container)
        .map_or(0, |container| container.restart_count);
    match look(pod) {
        Seen::Gone => Life::Lost,
        _ if times == again + 1 => Life::Before,
        _ if times > again => Life::Lost,
        Seen::Ended(_) | Seen::Hopeless(_) => Life::Ended,
        Seen::Running(_) | Seen::Coming | Seen::NoPlace(_) => Life::Goes,
    }
}
