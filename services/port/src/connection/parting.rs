//! The end of a connection whose node is stopping.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;

use super::connection_calls::ConnectionCalls;
use super::frame::LAST_GOAWAY;
use super::outgoing::Outgoing;
use crate::stop::{Phase, Stopping};

/// GOAWAY frames after which h2 takes no more calls: the first one only asks the client to begin none.
const GOAWAYS_MIN: u32 = 2;
/// Bytes to read at a time of what nobody will look at.
const DISCARD_BYTES: usize = 4 << 10;

/// Ends a connection with a GOAWAY that covers no stream, once all that must be answered has been.
///
/// Answers are on the wire before it, so the client's open streams are exactly those that were not
/// answered, and gRPC begins each of them anew on another connection: by itself, but only once in the life
/// of a call. A GOAWAY that covers streams, as h2 sends them, would keep the connection for as long as they
/// wait.
pub(super) struct Parting {
    phases: WatchStream<Phase>,
    /// It knows whether there are any that `phases` has not given.
    glance: watch::Receiver<Phase>,
    /// Whom `phases` wakes.
    woken: Option<Waker>,
    phase: Phase,
    calls: ConnectionCalls,
    /// It ends, whatever its port does.
    is_due: bool,
    /// What is still to be written of the last GOAWAY, if it is under way.
    farewell: Option<&'static [u8]>,
    /// Our side of the connection has ended.
    is_shut: bool,
}

impl Parting {
    pub(super) fn new(calls: ConnectionCalls, stopping: Stopping) -> Self {
        Self {
            glance: stopping.glance(),
            phases: stopping.phases(),
            woken: None,
            phase: Phase::Serving,
            calls,
            is_due: false,
            farewell: None,
            is_shut: false,
        }
    }

    pub(super) fn calls(&self) -> &ConnectionCalls {
        &self.calls
    }

    /// Has the connection end: no call has come on it.
    pub(super) fn part(&mut self) {
        self.is_due = true;
    }

    /// Whether the last GOAWAY was begun: what h2 writes from then on is for nobody.
    pub(super) fn is_begun(&self) -> bool {
        self.farewell.is_some()
    }

    /// Reads in place of h2 if h2 may not read any more. Ready then means that the connection has ended.
    pub(super) fn read_instead<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        inner: &mut S,
        context: &mut Context<'_>,
    ) -> Option<Poll<io::Result<()>>> {
        self.follow_phases(context);
        if self.phase >= Phase::Closing {
            return Some(Poll::Ready(Ok(())));
        }
        if self.is_begun() {
            return Some(self.poll_end(inner, context));
        }
        // A call that came now could be executed here and, after the GOAWAY, elsewhere.
        (self.phase >= Phase::Overdue).then_some(Poll::Pending)
    }

    /// Learns the phase. To ask `phases` takes a lock that all connections of the port share, and everything that is read comes
    /// by here, so it is asked only if there is news, or if another task than the last one is to be woken by it.
    fn follow_phases(&mut self, context: &mut Context<'_>) {
        let is_awaited = self.woken.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
        if is_awaited && matches!(self.glance.has_changed(), Ok(false)) {
            return;
        }
        // Before it is asked: what comes later is news.
        self.glance.mark_unchanged();
        while let Poll::Ready(Some(phase)) = Pin::new(&mut self.phases).poll_next(context) {
            self.phase = phase;
        }
        self.woken = Some(context.waker().clone());
    }

    /// Writes the last GOAWAY if it is time, after everything that is still `outgoing`. To be called when h2
    /// has written all that it can.
    pub(super) fn poll_farewell<S: AsyncWrite + Unpin>(
        &mut self,
        outgoing: &mut Outgoing,
        inner: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.farewell.is_none() && self.is_due(outgoing, context) {
            tracing::debug!(phase = ?self.phase, "last goaway is due");
            self.farewell = Some(&LAST_GOAWAY);
            // No more is to come of what has begun.
            outgoing.release();
            // The side that reads has to know, or it waits for something to read.
            context.waker().wake_by_ref();
        }
        ready!(outgoing.poll_give(inner, context))?;
        while let Some(rest) = self.farewell.filter(|rest| !rest.is_empty()) {
            let count = ready!(Pin::new(&mut *inner).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.farewell = Some(&rest[count..]);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads on, so that what the client still sends does not turn the end of the connection into a reset,
    /// which could overtake the GOAWAY. Ready at the client's end. Clients that had calls give them back
    /// aloud, and some keep a connection that is good for nothing any more: it ends when they have spoken.
    fn poll_end<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        inner: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; DISCARD_BYTES];
        let mut is_heard = false;
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *inner).poll_read(context, &mut buffer)? {
                Poll::Ready(()) if buffer.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(()) => is_heard = true,
                Poll::Pending => break,
            }
        }
        let is_said = self.farewell.is_some_and(<[u8]>::is_empty);
        if is_said && is_heard && !self.is_shut {
            self.is_shut = Pin::new(inner).poll_shutdown(context)?.is_ready();
        }
        Poll::Pending
    }

    fn is_due(&self, outgoing: &Outgoing, context: &Context<'_>) -> bool {
        let may = self.is_due
            || match self.phase {
                Phase::Serving | Phase::Leaving => false,
                Phase::Parting | Phase::Overdue => {
                    self.calls.is_quiet(context) && outgoing.goaways() >= GOAWAYS_MIN
                }
                Phase::Cutting | Phase::Closing => true,
            };
        may && outgoing.is_between_frames()
    }
}

#[cfg(test)]
#[path = "parting_test.rs"]
mod tests;
