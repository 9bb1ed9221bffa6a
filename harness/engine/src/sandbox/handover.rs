//! How a new sandbox hands out its gateway socket and tells its PID 1's number: over a socket pair that stands at
//! descriptor 3 of the sandbox's process.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use tokio::process::Command;

use crate::EngineError;

/// Where the sandbox's process finds its end.
const DESCRIPTOR: RawFd = 3;

pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), EngineError> {
    socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .map_err(|error| EngineError::io("make", "a socket pair")(error.into()))
}

/// Puts one end at [`DESCRIPTOR`] of the command's process.
pub(crate) fn give(command: &mut Command, end: OwnedFd) {
    // SAFETY: dup2 and fcntl are async-signal-safe. The descriptor is owned by the closure and so open.
    unsafe {
        command.pre_exec(move || {
            let end = end.as_raw_fd();
            let result = if end == DESCRIPTOR {
                // It is there already; only close-on-exec has to go.
                nix::libc::fcntl(end, nix::libc::F_SETFD, 0)
            } else {
                nix::libc::dup2(end, DESCRIPTOR)
            };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Sends PID 1's number and the listening socket.
pub(crate) fn send(init: i32, listener: &TcpListener) -> io::Result<()> {
    let bytes = init.to_ne_bytes();
    let descriptors = [listener.as_raw_fd()];
    sendmsg::<()>(
        DESCRIPTOR,
        &[IoSlice::new(&bytes)],
        &[ControlMessage::ScmRights(&descriptors)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    // Whoever waits for more must see the end, and nothing inside the sandbox may hold this socket.
    nix::unistd::close(DESCRIPTOR)?;
    Ok(())
}

/// Receives them; an error if the sandbox ended without sending.
pub(crate) fn receive(end: &OwnedFd) -> io::Result<(i32, TcpListener)> {
    let mut bytes = [0; 4];
    let mut space = cmsg_space!([RawFd; 1]);
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<()>(
        end.as_raw_fd(),
        &mut buffers,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let received = message.bytes;
    let descriptor = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    match descriptor {
        Some(descriptor) if received == 4 => {
            // SAFETY: the kernel has just given this process the descriptor, and nobody else knows it.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            Ok((i32::from_ne_bytes(bytes), TcpListener::from(descriptor)))
        }
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
