//! What runs in a gateway's pod: the host, and the pipe that an exec leads to it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use reprise_engine::kubernetes::host_socket;
use reprise_gateway::far::Host;
use tokio::io::{AsyncWriteExt, copy, stdin, stdout};
use tokio::net::UnixStream;

/// Plays `serve DIR` or `pipe DIR`.
pub(crate) fn main(role: Option<&str>, dir: Option<&Path>) -> ExitCode {
    let (Some(role), Some(dir)) = (role, dir) else {
        eprintln!("gateway: serve DIR or pipe DIR");
        return ExitCode::from(64);
    };
    let socket = host_socket(dir);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("gateway: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = match role {
        "serve" => runtime
            .block_on(Host::serve(&socket, dir.to_owned()))
            .map_err(|error| error.to_string()),
        _ => runtime
            .block_on(pipe(socket))
            .map_err(|error| error.to_string()),
    };
    // Standard input cannot be given up while it is read.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("gateway: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Leads standard input and output to the host's socket, until the host ends it.
async fn pipe(socket: PathBuf) -> std::io::Result<()> {
    // A container is up a moment before its program listens.
    let stream = (|| UnixStream::connect(&socket))
        .retry(
            ConstantBuilder::default()
                .with_delay(Duration::from_millis(50))
                .with_max_times(200),
        )
        .await?;
    let (mut read, mut write) = stream.into_split();
    let up = async {
        copy(&mut stdin(), &mut write).await?;
        // The owner is gone.
        write.shutdown().await
    };
    let down = async {
        let mut out = stdout();
        copy(&mut read, &mut out).await?;
        out.flush().await
    };
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}
