//! Connections that break when what is said on them is not answered.
//!
//! What a real network loses is sent once more by the systems at both ends. A simulated connection that has lost something
//! stays silent for good, and whoever speaks on it would find that out by the patience of its protocol, which may be
//! minutes. HTTP/2 has pings for that; who frames bytes otherwise has this.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use turmoil::net::TcpStream;

/// What was said is answered by then, or never will be. Longer than messages are slow, twice.
const ANSWERED_WITHIN: Duration = Duration::from_millis(1500);

/// A connection of whoever speaks first.
pub(super) struct Unheard {
    inner: TcpStream,
    /// While something that was said is not answered.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Unheard {
    pub(super) fn over(inner: TcpStream) -> Self {
        Self { inner, waiting: None }
    }
}

impl AsyncRead for Unheard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if read.is_ready() {
            self.waiting = None;
            return read;
        }
        let is_over = self.waiting.as_mut().is_some_and(|waiting| waiting.as_mut().poll(context).is_ready());
        if !is_over {
            return Poll::Pending;
        }
        self.waiting = None;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Unheard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        if written.is_ready() && self.waiting.is_none() {
            self.waiting = Some(Box::pin(tokio::time::sleep(ANSWERED_WITHIN)));
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
