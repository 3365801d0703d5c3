//! The adapter around an accepted connection.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use tripod_gateway::{CallerAddress, Place};

use super::line::Line;
use super::mender::Mender;
use super::opening::{Opening, Overdue};
use super::outgoing::Outgoing;
use super::parting::Parting;
use crate::stop::Stopping;

/// Bytes to make room for before a read.
const READ_BYTES: usize = 16 << 10;

/// A connection whose authority values h2 can parse, on which every answer leaves at once, and which ends
/// well when its node stops.
pub struct Mended<S> {
    inner: S,
    outgoing: Outgoing,
    parting: Parting,
    /// Gone as soon as the connection has turned out to be an ordinary one.
    filter: Option<Box<Filter>>,
    /// Gone when the first call has come.
    opening: Option<Opening>,
    _place: Option<Place>,
}

struct Filter {
    mender: Mender,
    /// Read and not judged yet.
    input: BytesMut,
    /// Judged and not given to h2 yet.
    output: BytesMut,
}

impl<S> Mended<S> {
    /// Adapts a connection from `address` from which nothing has been read yet, and which ends when `stopping` says so.
    pub fn new(inner: S, address: CallerAddress, stopping: Stopping) -> Self {
        let filter = Filter { mender: Mender::new(), input: BytesMut::new(), output: BytesMut::new() };
        let parting = Parting::new(Line::from(address), stopping);
        let outgoing = Outgoing::new(parting.line().clone());
        Self {
            inner,
            outgoing,
            parting,
            filter: Some(Box::new(filter)),
            opening: Some(Opening::new()),
            _place: None,
        }
    }
}

impl<S> Mended<S> {
    /// Counted for as long as it is open.
    pub(super) fn counted(self, place: Place) -> Self {
        Self { _place: Some(place), ..self }
    }
}

impl Filter {
    /// Reads until there is something to give, or the client has ended.
    fn fill<S: AsyncRead + Unpin>(
        &mut self,
        inner: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.output.is_empty() {
            self.input.reserve(READ_BYTES);
            // The future keeps nothing between two polls, so it may be made anew each time.
            let read = ready!(pin!(inner.read_buf(&mut self.input)).poll(context))?;
            if read == 0 {
                self.mender.end(&mut self.input, &mut self.output);
                return Poll::Ready(Ok(()));
            }
            self.mender
                .feed(&mut self.input, &mut self.output)
                .map_err(|malformed| io::Error::new(io::ErrorKind::InvalidData, malformed))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Mended<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, parting, filter, opening, .. } = &mut *self;
        if let Some(read) = parting.read_instead(inner, context) {
            // Who was told to go for saying nothing, and stays, is left.
            let is_left = opening.as_mut().is_some_and(|opening| opening.poll(true, context).is_ready());
            return if is_left { Poll::Ready(Ok(())) } else { read };
        }
        let Some(active) = filter else {
            return Pin::new(inner).poll_read(context, buffer);
        };
        if active.output.is_empty() && active.mender.is_passing() {
            *filter = None;
            *opening = None;
            return Pin::new(inner).poll_read(context, buffer);
        }
        match active.fill(inner, context)? {
            Poll::Ready(()) => {}
            Poll::Pending => return overdue(opening, active, parting, context),
        }
        if active.mender.has_call() {
            *opening = None;
        }
        let given = active.output.len().min(buffer.remaining());
        buffer.put_slice(&active.output[..given]);
        active.output.advance(given);
        Poll::Ready(Ok(()))
    }
}

/// Nothing is there to be read. If that has been so for too long since the connection began, it ends.
fn overdue(
    opening: &mut Option<Opening>,
    active: &Filter,
    parting: &mut Parting,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let Some(waited) = opening else { return Poll::Pending };
    match ready!(waited.poll(active.mender.has_preface(), context)) {
        Overdue::Part => {
            parting.part();
            Poll::Pending
        }
        Overdue::Close => {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client began nothing")))
        }
    }
}

/// Not vectored: what h2 writes is gathered here.
impl<S: AsyncWrite + Unpin> AsyncWrite for Mended<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { inner, outgoing, parting, .. } = &mut *self;
        if parting.is_begun() {
            return Poll::Ready(Ok(bytes.len()));
        }
        if outgoing.is_full() {
            outgoing.release();
            ready!(outgoing.poll_give(inner, context))?;
        }
        Poll::Ready(Ok(outgoing.take(bytes)))
    }

    /// h2 calls it when it has nothing more to write, and in between.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, outgoing, parting, .. } = &mut *self;
        ready!(parting.poll_farewell(outgoing, inner, context))?;
        Pin::new(inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, outgoing, .. } = &mut *self;
        outgoing.release();
        ready!(outgoing.poll_give(inner, context))?;
        Pin::new(inner).poll_shutdown(context)
    }
}

impl<S> Connected for Mended<S> {
    type ConnectInfo = Line;

    fn connect_info(&self) -> Line {
        self.parting.line().clone()
    }
}
