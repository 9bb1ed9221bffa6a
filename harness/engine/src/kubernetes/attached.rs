//! A command in a pod, over a websocket: its input, its output, its exit code.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Error as ClientError;
use kube::api::{Api, AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::objects::MAIN;

/// How much is on its way at once; kube's own default is 1 KiB.
const BUFFER: usize = 256 * 1024;

type Reading = Box<dyn AsyncRead + Send + Unpin>;
type Writing = Box<dyn AsyncWrite + Send + Unpin>;

/// A command that runs in a pod.
pub(super) struct Attached {
    /// Dropping it ends the connection.
    process: AttachedProcess,
    stdin: Writing,
    stdout: Reading,
    stderr: Reading,
    status: BoxFuture<'static, Option<Status>>,
}

/// What a command left.
pub(super) struct Left {
    /// Its exit code; `None` if the connection broke before it ended.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// What went wrong with the exec itself.
    pub(super) trouble: Option<String>,
}

/// Why a command in a pod was not seen to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachError {
    /// It could not be run.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Its input or output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Words of the API server's when it did not reach the node: nothing was run then.
const NOT_REACHED: [&str; 3] = [
    "error sending request",
    "error dialing backend",
    "unable to upgrade connection: pod does not exist",
];

/// How often a node that is not reached is tried, twice a second.
const ATTEMPTS: usize = 60;

impl Left {
    /// Whether the command was never run, because its node was not reached.
    fn not_run(&self) -> bool {
        let trouble = self.trouble.as_deref().unwrap_or_default();
        self.code.is_none() && NOT_REACHED.iter().any(|words| trouble.contains(words))
    }
}

impl Attached {
    /// Runs a command to its end. A node that is not reached is tried again for half a minute: its kubelet may be on its
    /// way up.
    pub(super) async fn run_to_end(
        pods: &Api<Pod>,
        pod: &str,
        argv: &[&str],
        input: &[u8],
    ) -> Result<Left, AttachError> {
        let mut left = ATTEMPTS;
        loop {
            let attached = Self::run(pods, pod, argv).await?;
            let ended = attached.finish(input).await?;
            if !ended.not_run() || left == 0 {
                return Ok(ended);
            }
            left -= 1;
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }

    pub(super) async fn run(
        pods: &Api<Pod>,
        pod: &str,
        argv: &[&str],
    ) -> Result<Self, ClientError> {
        let params = AttachParams::default()
            .container(MAIN)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .max_stdin_buf_size(BUFFER)
            .max_stdout_buf_size(BUFFER)
            .max_stderr_buf_size(BUFFER);
        let mut process = pods.exec(pod, argv.iter().copied(), &params).await?;
        Ok(Self {
            stdin: Box::new(process.stdin().expect("it was asked for")),
            stdout: Box::new(process.stdout().expect("it was asked for")),
            stderr: Box::new(process.stderr().expect("it was asked for")),
            status: process.take_status().expect("it is taken once").boxed(),
            process,
        })
    }

    /// Feeds it, and waits for its end.
    pub(super) async fn finish(mut self, mut input: &[u8]) -> io::Result<Left> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (mut stdin, mut stdout, mut stderr) = (self.stdin, self.stdout, self.stderr);
        let feeding = async {
            // A command that does not read its input closes it; that is its own business.
            let _ = tokio::io::copy(&mut input, &mut stdin).await;
            let _ = stdin.flush().await;
            // Until the command has ended: not every server can pass on that there is no more.
            std::future::pending::<()>().await;
        };
        // A connection that breaks leaves the outputs open, and only its status says so.
        let status = {
            let reading = async {
                tokio::try_join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err))
            };
            let mut reading = std::pin::pin!(reading);
            let first = tokio::select! {
                () = feeding => None,
                read = &mut reading => {
                    read?;
                    None
                }
                said = &mut self.status => Some(said),
            };
            match first {
                None => (&mut self.status).await,
                Some(None) => None,
                Some(said) => {
                    reading.await?;
                    said
                }
            }
        };
        self.process.abort();
        let (code, trouble) = match status {
            None => (None, Some("the connection broke".to_owned())),
            Some(status) => read(&status),
        };
        Ok(Left {
            code,
            stdout: out,
            stderr: err,
            trouble,
        })
    }

    /// Its input and output as one stream.
    pub(super) fn into_stream(self) -> Pipe {
        Pipe {
            read: self.stdout,
            write: self.stdin,
            status: self.status,
            broken: false,
            _process: self.process,
        }
    }
}

/// What a status says of a command's end
/// (<https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go>).
fn read(status: &Status) -> (Option<i32>, Option<String>) {
    if status.status.as_deref() == Some("Success") {
        return (Some(0), None);
    }
    let code = status
        .details
        .iter()
        .flat_map(|details| details.causes.iter().flatten())
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .and_then(|cause| cause.message.as_ref()?.parse().ok());
    let trouble = code.is_none().then(|| {
        status
            .message
            .clone()
            .unwrap_or_else(|| "it could not be run".to_owned())
    });
    (code, trouble)
}

/// A command's input and output.
pub(super) struct Pipe {
    read: Reading,
    write: Writing,
    status: BoxFuture<'static, Option<Status>>,
    /// The connection is gone; the outputs it left open say nothing of it.
    broken: bool,
    _process: AttachedProcess,
}

impl Pipe {
    /// Whether the connection is gone, without a word of the command's own. One that has ended closes its outputs, in which
    /// something may be left.
    fn is_broken(&mut self, context: &mut Context<'_>) -> bool {
        if !self.broken
            && let Poll::Ready(said) = self.status.as_mut().poll(context)
        {
            self.broken = said.is_none();
            self.status = std::future::pending().boxed();
        }
        self.broken
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.read).poll_read(context, buffer) {
            Poll::Pending if self.is_broken(context) => {
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
            polled => polled,
        }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.write).poll_write(context, buffer) {
            Poll::Pending if self.is_broken(context) => {
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
            polled => polled,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};

    use super::*;

    #[test]
    fn a_status_tells_the_exit_code_or_what_went_wrong() {
        let good = Status {
            status: Some("Success".to_owned()),
            ..Default::default()
        };
        assert_eq!(read(&good), (Some(0), None));
        let bad = Status {
            status: Some("Failure".to_owned()),
            message: Some("command terminated with non-zero exit code".to_owned()),
            details: Some(StatusDetails {
                causes: Some(vec![StatusCause {
                    reason: Some("ExitCode".to_owned()),
                    message: Some("7".to_owned()),
                    ..Default::default()
                }]),
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(read(&bad), (Some(7), None));
        let none = Status {
            status: Some("Failure".to_owned()),
            message: Some("container not found".to_owned()),
            ..Default::default()
        };
        assert_eq!(read(&none), (None, Some("container not found".to_owned())));
    }
}
