//! Leads an address on the workspace's loopback to the gateway: to a socket that was mounted into the workspace, or to a
//! host that serves many workspaces and is told which one this is.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;

/// Where connections lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outside {
    /// A mounted socket.
    Socket(PathBuf),
    /// A host, which is greeted with the workspace's id.
    Host {
        address: SocketAddr,
        workspace: String,
    },
}

impl FromStr for Outside {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let Some(host) = given.strip_prefix("tcp://") else {
            return Ok(Self::Socket(given.into()));
        };
        let wrong = || format!("`{given}` is no socket and not tcp://ADDRESS:PORT/WORKSPACE");
        let (address, workspace) = host.split_once('/').ok_or_else(wrong)?;
        Ok(Self::Host {
            address: address.parse().map_err(|_| wrong())?,
            workspace: workspace.to_owned(),
        })
    }
}

/// Forwards every connection to `from`, in threads of this process.
///
/// # Errors
/// If `from` cannot be listened on.
pub(crate) fn start(from: SocketAddr, to: Outside) -> io::Result<()> {
    let listener = TcpListener::bind(from)?;
    thread::spawn(move || {
        for stream in listener.incoming().filter_map(Result::ok) {
            let to = to.clone();
            // A connection that breaks is the client's to notice: both its ends are closed.
            thread::spawn(move || drop(lead(&stream, &to)));
        }
    });
    Ok(())
}

fn lead(inner: &TcpStream, to: &Outside) -> io::Result<()> {
    inner.set_nodelay(true)?;
    match to {
        Outside::Socket(path) => {
            let outer = UnixStream::connect(path)?;
            join(inner, &outer, || outer.shutdown(Shutdown::Write))
        }
        Outside::Host { address, workspace } => {
            let mut outer = TcpStream::connect(address)?;
            outer.set_nodelay(true)?;
            outer.write_all(format!("{workspace}\n").as_bytes())?;
            join(inner, &outer, || outer.shutdown(Shutdown::Write))
        }
    }
}

fn join<S>(
    inner: &TcpStream,
    outer: &S,
    shut: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<()>
where
    S: Sync,
    for<'s> &'s S: Read + Write,
{
    thread::scope(|scope| {
        scope.spawn(|| {
            let result = io::copy(&mut &*inner, &mut &*outer);
            let _ = shut();
            result
        });
        let result = io::copy(&mut &*outer, &mut &*inner);
        let _ = inner.shutdown(Shutdown::Write);
        result
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_is_a_socket_or_a_host() {
        assert_eq!(
            "/run/x.sock".parse(),
            Ok(Outside::Socket("/run/x.sock".into()))
        );
        assert_eq!(
            "tcp://10.0.0.1:8377/w".parse(),
            Ok(Outside::Host {
                address: "10.0.0.1:8377".parse().expect("an address"),
                workspace: "w".to_owned()
            })
        );
        assert!("tcp://nowhere".parse::<Outside>().is_err());
    }
}
