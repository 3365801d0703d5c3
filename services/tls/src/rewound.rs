//! A stream whose first byte was looked at.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives the byte first that was taken.
#[derive(Debug)]
pub struct Rewound<S> {
    taken: Option<u8>,
    inner: S,
}

impl<S> Rewound<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { taken: None, inner }
    }
}

impl<S: AsyncRead + Unpin> Rewound<S> {
    /// When the other side has said something.
    pub(crate) async fn when_heard(inner: S) -> io::Result<Self> {
        let mut this = Self::new(inner);
        match std::future::poll_fn(|context| this.poll_first(context)).await? {
            Some(_) => Ok(this),
            None => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection at once"))
            }
        }
    }

    /// The first byte, which is given again; `None` at the end.
    pub(crate) fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        std::task::ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer))?;
        self.taken = buffer.filled().first().copied();
        Poll::Ready(Ok(self.taken))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(byte) = self.taken.take()
        {
            buffer.put_slice(&[byte]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
