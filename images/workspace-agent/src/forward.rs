//! Leads an address on the workspace's loopback to a socket that was mounted into it.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

/// Forwards every connection to `from`, in threads of this process.
///
/// # Errors
/// If `from` cannot be listened on.
pub(crate) fn start(from: SocketAddr, to: PathBuf) -> io::Result<()> {
    let listener = TcpListener::bind(from)?;
    thread::spawn(move || {
        for stream in listener.incoming().filter_map(Result::ok) {
            let to = to.clone();
            // A connection that breaks is the client's to notice: both its ends are closed.
            thread::spawn(move || drop(join(&stream, &to)));
        }
    });
    Ok(())
}

fn join(inner: &TcpStream, to: &Path) -> io::Result<()> {
    let outer = UnixStream::connect(to)?;
    inner.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let result = io::copy(&mut &*inner, &mut &outer);
            let _ = outer.shutdown(Shutdown::Write);
            result
        });
        let result = io::copy(&mut &outer, &mut &*inner);
        let _ = inner.shutdown(Shutdown::Write);
        result
    })
    .map(drop)
}
