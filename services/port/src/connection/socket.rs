//! An accepted connection, of whichever kind.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tripod_tls::{Presented, ServerStream};

use crate::caller_address::CallerAddress;

/// Bytes that are taken of what a client without a permit has said.
const TURNED_AWAY_BYTES: usize = 4 << 10;

/// An accepted connection.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    /// With where it comes from.
    Tls(Box<ServerStream<TcpStream>>, CallerAddress),
    Unix(UnixStream),
    Duplex(DuplexStream),
}

impl Socket {
    /// Where its connection comes from. What has ended before it could be asked comes from nowhere else than here.
    pub(crate) fn address(&self) -> CallerAddress {
        match self {
            Self::Tcp(stream) => {
                stream.peer_addr().map_or(CallerAddress::default(), |peer| CallerAddress::at(peer.ip()))
            }
            Self::Tls(_, address) => *address,
            Self::Unix(_) | Self::Duplex(_) => CallerAddress::default(),
        }
    }

    /// The user whose process has connected, if the system says it of such a connection.
    pub(super) fn user(&self) -> Option<u32> {
        match self {
            Self::Unix(stream) => stream.peer_cred().ok().map(|peer| peer.uid()),
            Self::Tcp(_) | Self::Tls(..) | Self::Duplex(_) => None,
        }
    }

    /// Whom its client will have proved to be, if it can.
    pub(super) fn presented(&self) -> Option<Presented> {
        match self {
            Self::Tls(stream, _) => Some(stream.presented()),
            Self::Tcp(_) | Self::Unix(_) | Self::Duplex(_) => None,
        }
    }

    /// Tells the client by these last `words`, as far as that can be done without waiting, and closes the connection.
    pub(super) fn turn_away(self, words: &[u8]) {
        let mut said = [0; TURNED_AWAY_BYTES];
        // What has come is taken, or its being there would turn the end of the connection into a reset, which overtakes
        // what is written. It may be gone already, or its buffer too small: it is closed all the same.
        let _ = match &self {
            Self::Tcp(stream) => stream.try_read(&mut said).or(Ok(0)).and_then(|_| stream.try_write(words)),
            Self::Unix(stream) => stream.try_read(&mut said).or(Ok(0)).and_then(|_| stream.try_write(words)),
            // There is no time for a handshake.
            Self::Tls(..) | Self::Duplex(_) => Ok(0),
        };
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream, _) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Duplex(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream, _) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Duplex(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream, _) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Duplex(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream, _) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Duplex(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream, _) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Duplex(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream, _) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Duplex(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
