//! Replies as a process reads them.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use bytes::BytesMut;
use prost::Message as _;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tripod_proto::tripod::v1::LocalReply;
use tripod_proto::tripod::v1::local_reply::Told;

use super::frame;

/// The longest reply: an inline object of the largest size that a store may be given, and what is around it.
const REPLY_BYTES_MAX: usize = (1 << 20) + 4096;
const READ_BYTES: usize = 64 << 10;
/// Descriptors that one reading can bring.
const DESCRIPTORS_MAX: usize = 8;

/// Reads replies with their descriptors.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    buffer: BytesMut,
    /// In the order in which they came, which is that of the frames that have one.
    descriptors: VecDeque<OwnedFd>,
    chunk: Vec<u8>,
}

impl Incoming {
    /// The next reply; `None` at the end.
    ///
    /// # Errors
    /// What the system says, or that the other side does not speak the protocol.
    pub(super) async fn next(
        &mut self,
        stream: &UnixStream,
    ) -> io::Result<Option<(LocalReply, Option<OwnedFd>)>> {
        loop {
            if let Some(frame) = frame::take(&mut self.buffer, REPLY_BYTES_MAX).map_err(io::Error::other)? {
                let reply = LocalReply::decode(frame).map_err(io::Error::other)?;
                let passes = matches!(&reply.told, Some(Told::Object(object)) if object.descriptor);
                if !passes {
                    return Ok(Some((reply, None)));
                }
                let missing =
                    || io::Error::other("a reply came without its descriptor; next: raise `ulimit -n`");
                let descriptor = self.descriptors.pop_front().ok_or_else(missing)?;
                return Ok(Some((reply, Some(descriptor))));
            }
            if self.read(stream).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn read(&mut self, stream: &UnixStream) -> io::Result<usize> {
        self.chunk.resize(READ_BYTES, 0);
        loop {
            stream.readable().await?;
            let (chunk, descriptors) = (&mut self.chunk, &mut self.descriptors);
            let read = stream.try_io(Interest::READABLE, || receive(stream, chunk, descriptors));
            match read {
                Ok(read) => {
                    self.buffer.extend_from_slice(&self.chunk[..read]);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads replies until the end, or until one is none.
pub(crate) async fn read_to_the_end(stream: &UnixStream) {
    let mut incoming = Incoming::default();
    while let Ok(Some(_)) = incoming.next(stream).await {}
}

fn receive(stream: &UnixStream, chunk: &mut [u8], descriptors: &mut VecDeque<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(stream, &mut [IoSliceMut::new(chunk)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(received.bytes)
}
