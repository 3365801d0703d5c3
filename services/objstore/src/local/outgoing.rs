//! Replies on their way to a process.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use bytes::BytesMut;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tripod_proto::tripod::v1::LocalReply;

use super::frame;
use crate::value::{Body, Value};

/// What a reply passes.
#[derive(Debug)]
pub(super) enum Passed {
    Nothing,
    /// A whole object's memory.
    Object(Arc<Value>),
    /// Memory to be written to.
    Memory(std::fs::File),
}

/// A reply, and what it passes.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) reply: LocalReply,
    pub(super) passed: Passed,
}

/// Replies without descriptors that are written at once, in bytes.
const TOGETHER_BYTES: usize = 256 << 10;

/// Writes replies until there are no more.
///
/// # Errors
/// What the system says; mostly that the process is gone.
pub(super) async fn write_all(stream: &UnixStream, mut replies: mpsc::Receiver<Outgoing>) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    while let Some(mut outgoing) = replies.recv().await {
        loop {
            match &outgoing.passed {
                Passed::Nothing => frame::put(&outgoing.reply, &mut buffer),
                passed => {
                    // What is before it must be on its way: a descriptor travels with a frame's first byte.
                    write(stream, &mut buffer).await?;
                    frame::put(&outgoing.reply, &mut buffer);
                    send_first(stream, &mut buffer, passed).await?;
                }
            }
            if buffer.len() >= TOGETHER_BYTES {
                break;
            }
            match replies.try_recv() {
                Ok(next) => outgoing = next,
                Err(_) => break,
            }
        }
        write(stream, &mut buffer).await?;
    }
    Ok(())
}

/// Writes everything that is in the buffer.
pub(super) async fn write(stream: &UnixStream, buffer: &mut BytesMut) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.writable().await?;
        match stream.try_write(buffer) {
            Ok(written) => _ = buffer.split_to(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    // Large replies are rare; their memory is not kept for the connection's life.
    if buffer.capacity() > 2 * TOGETHER_BYTES {
        *buffer = BytesMut::new();
    }
    Ok(())
}

/// Sends the beginning of the buffer with a descriptor.
async fn send_first(stream: &UnixStream, buffer: &mut BytesMut, passed: &Passed) -> io::Result<()> {
    let descriptor = match passed {
        Passed::Nothing => return Ok(()),
        Passed::Memory(file) => file.as_fd(),
        Passed::Object(value) => match value.body() {
            Body::Sealed { file, .. } => file.as_fd(),
            Body::Inline(_) => return Ok(()),
        },
    };
    let descriptors = [descriptor];
    loop {
        stream.writable().await?;
        let sent = stream.try_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
            assert!(fits, "there is space for one descriptor");
            Ok(sendmsg(stream, &[IoSlice::new(buffer)], &mut control, SendFlags::NOSIGNAL)?)
        });
        match sent {
            Ok(sent) => {
                _ = buffer.split_to(sent);
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
