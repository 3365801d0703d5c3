//! What h2 has written and the socket has not been given yet: whole answers leave at once.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::AsyncWrite;
use tokio::time::{Instant, Sleep, sleep_until};

use super::boundary::Boundary;
use super::connection_calls::ConnectionCalls;
use super::frame::{DATA, END_STREAM, HEAD_BYTES, HEADERS, Head, RESET};

/// For this long the begin of an answer may wait for its rest, which comes some microseconds later unless the
/// task that answers has its processor taken away in between.
const REST_TAKES: Duration = Duration::from_millis(100);
/// So many times h2 must have had nothing to write before it is taken for certain that it has nothing: what
/// was handed to it before the first time, it has written by the second.
const IDLE_FLUSHES: u8 = 2;
/// A gRPC message's head: whether it is compressed, and how long it is.
const MESSAGE_HEAD_BYTES: usize = 5;
/// Bytes that are gathered at most; with more the begin of an answer leaves without its rest.
const BYTES_MAX: usize = 128 << 10;
/// Room that an idle connection keeps.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// Gathers frames until h2 has nothing more to write, and keeps the begin of an answer back until its end
/// has come.
///
/// gRPC repeats a call of which it has heard nothing, and no call of which the begin of an answer has come.
/// The headers, the message and the trailers of an answer are handed to h2 one after the other, while
/// another task writes what h2 has; so a node that is killed in between would fail the call.
///
/// Nothing is kept back longer than that takes: not for streams, whose end may come any time, and not for
/// messages that the client's window does not let through, or they never would be.
pub(super) struct Outgoing {
    bytes: BytesMut,
    written: Boundary,
    /// How many bytes the socket was given so far.
    given: u64,
    /// Answers that have begun and not ended, in the order of their begins, all of them among `bytes`.
    begun: VecDeque<Begun>,
    calls: ConnectionCalls,
    /// How often h2 had nothing to write since something last came or was about to come.
    idle_flushes: u8,
    /// Set for the first of `begun`, if it was kept back.
    late: Option<Pin<Box<Sleep>>>,
}

/// An answer that has begun.
struct Begun {
    stream: u32,
    /// Bytes of the connection before it.
    at: u64,
    since: Instant,
}

impl Outgoing {
    /// Nothing yet, on the connection of `calls`.
    pub(super) fn new(calls: ConnectionCalls) -> Self {
        Self {
            bytes: BytesMut::new(),
            written: Boundary::default(),
            given: 0,
            begun: VecDeque::new(),
            calls,
            idle_flushes: 0,
            late: None,
        }
    }

    /// Takes of h2's bytes what there is room for, and gives their number.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(BYTES_MAX.saturating_sub(self.bytes.len()));
        let begun = &mut self.begun;
        self.written.advance(&bytes[..count], |head, at| follow(begun, head, at));
        self.bytes.extend_from_slice(&bytes[..count]);
        self.idle_flushes = 0;
        count
    }

    /// Whether there is no room left.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES_MAX
    }

    /// Whether the last frame of h2's is complete.
    pub(super) fn is_between_frames(&self) -> bool {
        self.written.is_between_frames()
    }

    /// How many GOAWAY frames h2 has begun.
    pub(super) fn goaways(&self) -> u32 {
        self.written.goaways()
    }

    /// Keeps nothing back any more of what was taken so far.
    pub(super) fn release(&mut self) {
        self.begun.clear();
    }

    /// Gives the socket everything but the begins of answers whose rest is about to come. Ready if nothing
    /// else is left. To be called when h2 has nothing more to write; the task is woken to try again.
    pub(super) fn poll_give<S: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.begun.is_empty() {
            self.judge(context);
        }
        while self.ready_bytes() > 0 {
            let ready = &self.bytes[..self.ready_bytes()];
            let count = ready!(Pin::new(&mut *socket).poll_write(context, ready))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.bytes.advance(count);
            self.given += count as u64;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    fn ready_bytes(&self) -> usize {
        let kept_from = self.begun.front().map(|begun| begun.at.saturating_sub(self.given));
        let ready = kept_from.and_then(|bytes| usize::try_from(bytes).ok());
        ready.map_or(self.bytes.len(), |bytes| bytes.min(self.bytes.len()))
    }

    /// Gives up on answers whose rest is not about to come.
    fn judge(&mut self, context: &mut Context<'_>) {
        let is_coming = self.calls.is_handing() && !self.is_first_message_cut();
        if is_coming && self.wait_for_first(context) {
            self.idle_flushes = 0;
            return;
        }
        self.idle_flushes += 1;
        if is_coming || self.idle_flushes >= IDLE_FLUSHES {
            self.release();
        } else {
            context.waker().wake_by_ref();
        }
    }

    /// Whether the first answer may be waited for still. The task is woken when it may no longer.
    fn wait_for_first(&mut self, context: &mut Context<'_>) -> bool {
        let Some(first) = self.begun.front() else { return false };
        let deadline = first.since + REST_TAKES;
        let late = self.late.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if late.deadline() != deadline {
            late.as_mut().reset(deadline);
        }
        late.as_mut().poll(context).is_pending()
    }

    /// Whether the first answer has a part of its message only. h2 is handed messages whole, so the client's
    /// window must have kept the rest from coming.
    fn is_first_message_cut(&self) -> bool {
        let Some(first) = self.begun.front() else { return false };
        let mut rest = &self.bytes[self.ready_bytes()..];
        let mut message = BytesMut::new();
        let mut bytes = 0;
        while let Some(head) = Head::peek(rest) {
            let frame = rest.split_at(rest.len().min(HEAD_BYTES + head.payload_bytes));
            if head.kind == DATA && head.stream == first.stream {
                bytes += head.payload_bytes;
                let missing = MESSAGE_HEAD_BYTES - message.len();
                message.extend(frame.0[HEAD_BYTES..].iter().take(missing));
            }
            rest = frame.1;
        }
        let claimed = message.get(1..MESSAGE_HEAD_BYTES).map(|mut bytes| bytes.get_u32() as usize);
        claimed.map_or(bytes > 0, |claimed| bytes < MESSAGE_HEAD_BYTES + claimed)
    }
}

/// Notes the head of a frame that begins after `at` bytes of the connection.
fn follow(begun: &mut VecDeque<Begun>, head: Head, at: u64) {
    if head.kind == RESET || matches!(head.kind, HEADERS | DATA) && head.has(END_STREAM) {
        // Few answers are open at a time, and the one that ends is mostly the last.
        if let Some(place) = begun.iter().rposition(|begun| begun.stream == head.stream) {
            begun.remove(place);
        }
    } else if head.kind == HEADERS {
        begun.push_back(Begun { stream: head.stream, at, since: Instant::now() });
    }
}

#[cfg(test)]
#[path = "outgoing_test.rs"]
mod tests;
