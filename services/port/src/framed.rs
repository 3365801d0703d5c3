//! Serving protocols that frame their bytes themselves.

mod ahead;
mod timeouts;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_stream::StreamExt as _;
use tripod_local::ConnectionPermit;
use tripod_proto::code::Code;

use crate::bytes_held::{Account, Budget};
use crate::caller_address::CallerAddress;
use crate::caller_connection::CallerConnection;
use crate::connection::{Arrivals, Silence, SilentConnections, Socket};
use crate::stop::Stopping;
use crate::throttle::Throttle;

pub use self::ahead::{Ahead, LEFT_TIME, Messages, is_slow};
pub use self::timeouts::{Deadlines, Timeouts};

/// A client's connection, for a front end that frames its bytes itself. It is counted for as long as this lives.
#[derive(Debug)]
pub struct Accepted {
    /// Its bytes in both directions. Reading fails if nothing comes in the time to begin, or before another one needs its
    /// place.
    pub stream: Bytestream,
    /// Where it comes from.
    pub peer: CallerAddress,
    /// Where the bytes are to be counted that are held for it.
    pub account: Account,
    /// How long its client may take over each message.
    pub deadlines: Deadlines,
}

/// What comes and goes on an accepted connection.
#[derive(Debug)]
pub struct Bytestream {
    inner: Socket,
    /// Gone when something has come.
    opening: Option<Opening>,
    /// Kept with the silence until then.
    permit: Option<ConnectionPermit>,
}

/// The time before a connection's first byte.
#[derive(Debug)]
struct Opening {
    time: Pin<Box<Sleep>>,
    silence: Silence,
}

/// What is done with one connection until it ends.
pub type Handling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How a front end serves the connections of a protocol that frames its bytes itself. When the stop of the port begins
/// ([`Stopping::begun`]), it answers what must be answered, begins nothing, and ends; when it is late with that
/// ([`Stopping::overdue`]), it says that the outcome is unknown. What is left after that is closed. It reads each message
/// within the [`Deadlines`] of its connection, as a port cannot see where messages begin and end.
#[derive(Clone)]
pub struct Framed {
    handle: Arc<dyn Fn(Accepted, Stopping) -> Handling + Send + Sync>,
    timeouts: Timeouts,
    unfinished: Arc<Throttle>,
}

impl fmt::Debug for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Framed")
    }
}

impl Framed {
    /// Each connection is handled so, within the usual [`Timeouts`].
    #[must_use]
    pub fn new<H>(handle: impl Fn(Accepted, Stopping) -> H + Send + Sync + 'static) -> Self
    where
        H: Future<Output = ()> + Send + 'static,
    {
        let handle = move |accepted: Accepted, stopping: Stopping| -> Handling {
            Box::pin(handle(accepted, stopping))
        };
        Self { handle: Arc::new(handle), timeouts: Timeouts::default(), unfinished: Arc::default() }
    }

    /// The same, and clients may take so long.
    #[must_use]
    pub fn within(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Serves connections until their stop begins, and then until the last of them has ended. Those that are left when this
    /// is dropped are closed.
    pub(crate) async fn serve(
        self,
        mut arrivals: Arrivals,
        memory: Budget,
        silent: SilentConnections,
        stopping: Stopping,
    ) {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stopping.begun() => break,
                Some((socket, permit)) = arrivals.next() => {
                    let peer = socket.address();
                    let stream = Bytestream::new(socket, silent.enter(peer, permit), self.timeouts.begin);
                    let deadlines = Deadlines::new(self.timeouts, peer, Arc::clone(&self.unfinished));
                    let accepted = Accepted { stream, peer, account: memory.account(), deadlines };
                    let handling = (self.handle)(accepted, stopping.clone());
                    open.spawn(CallerConnection::from(peer).scope(handling));
                }
                Some(_) = open.join_next() => {}
            }
        }
        while open.join_next().await.is_some() {}
    }
}

/// Before a client has said anything, nobody but it knows how to tell it something.
pub(crate) fn no_words(_: &str) -> Vec<u8> {
    Vec::new()
}

impl Bytestream {
    fn new(inner: Socket, silence: Silence, begin: Duration) -> Self {
        let opening = Opening { time: Box::pin(tokio::time::sleep(begin)), silence };
        Self { inner, opening: Some(opening), permit: None }
    }
}

impl AsyncRead for Bytestream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, opening, permit } = &mut *self;
        // What has come is read first: a pause of this process ends no connection.
        let read = Pin::new(inner).poll_read(context, buffer);
        let Some(Opening { time, silence }) = opening else { return read };
        if read.is_pending() {
            if silence.poll_given_way(context).is_ready() {
                return Poll::Ready(Err(gave_way()));
            }
            ready!(time.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client began nothing")));
        }
        *permit = silence.end();
        if permit.is_none() {
            // What has come may not be looked at: another connection has this one's place.
            return Poll::Ready(Err(gave_way()));
        }
        *opening = None;
        read
    }
}

fn gave_way() -> io::Error {
    let text =
        format!("{}: the client had said nothing when another needed its place", Code::ConnectionsFull);
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl AsyncWrite for Bytestream {
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

#[cfg(test)]
#[path = "framed_test.rs"]
mod tests;
