//! A request's body.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;
use tonic::Status;

use super::messages::Messages;
use super::weight::Weight;
use crate::bytes_held::{CONNECTION_BYTES_FREE, CallBytes, Short};
use crate::manner::{Known, MethodKind};
use crate::refusal;

/// For so long nothing may come of a message, if memory is short.
const REST_TIME: Duration = Duration::from_secs(30);
/// For so long a message may wait for its turn. What has come of those that wait takes the connection's window, so that
/// the one whose turn it is may wait for them; when they are refused, it goes on.
const WAIT_TIME: Duration = Duration::from_secs(30);

/// A request's body whose bytes are counted. When its connection holds as much as it may, it is not read on, so that
/// the client is granted nothing more.
pub struct Received<B> {
    inner: B,
    call: CallBytes,
    messages: Messages,
    weight: Weight,
    /// Whether it waits for its turn when its connection holds too much.
    takes_turns: bool,
    held: u64,
    /// Set when it waits for its turn.
    wait: Option<Pin<Box<Sleep>>>,
    /// Set when a large message waits for its rest.
    rest: Option<Pin<Box<Sleep>>>,
}

impl<B> Received<B> {
    /// The body of the request of a call of which this is known.
    pub(crate) fn of(request: Request<B>, call: &CallBytes, known: Known) -> Request<Self> {
        let messages = Messages::new(known.kind != MethodKind::Streaming);
        let weight = if known.has_value { Weight::Value } else { Weight::Lists };
        Self::weighing(request, call, messages, weight)
    }

    /// The body of a call of one message, of which nothing is made but the bytes that came.
    #[must_use]
    pub fn of_bytes(request: Request<B>, call: &CallBytes) -> Request<Self> {
        Self::weighing(request, call, Messages::new(true), Weight::Value)
    }

    /// The body of a stream of frames. It waits for no turn: what a connection holds are the ops that came by it, and their
    /// cancellations come by it, too. One frame at a time is held of it.
    pub(crate) fn of_frames(request: Request<B>, call: &CallBytes) -> Request<Self> {
        let request = Self::weighing(request, call, Messages::new(false), Weight::Value);
        request.map(|body| Self { takes_turns: false, ..body })
    }

    fn weighing(request: Request<B>, call: &CallBytes, messages: Messages, weight: Weight) -> Request<Self> {
        request.map(|inner| Self {
            inner,
            call: call.clone(),
            messages,
            weight,
            takes_turns: true,
            held: 0,
            wait: None,
            rest: None,
        })
    }

    /// Nothing has come. If that has been so for too long, the request is refused.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Short> {
        if self.held < CONNECTION_BYTES_FREE || !self.messages.is_open() {
            return Poll::Pending;
        }
        let rest = self.rest.get_or_insert_with(|| Box::pin(tokio::time::sleep(REST_TIME)));
        loop {
            ready!(rest.as_mut().poll(context));
            if self.call.account().budget().is_short() {
                return Poll::Ready(Short::Stalled { seconds: REST_TIME.as_secs() });
            }
            rest.set(tokio::time::sleep(REST_TIME));
        }
    }
}

impl<B: Body<Data = Bytes, Error = Status> + Unpin> Body for Received<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let turn = if this.takes_turns { this.call.poll_turn(context) } else { Poll::Ready(Ok(())) };
        match turn {
            Poll::Ready(Ok(())) => this.wait = None,
            Poll::Ready(Err(short)) => return Poll::Ready(Some(Err(refusal::of_short(short)))),
            Poll::Pending => {
                let wait = this.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(WAIT_TIME)));
                ready!(wait.as_mut().poll(context));
                return Poll::Ready(Some(Err(refusal::of_short(this.call.give_up()))));
            }
        }
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) else {
            let short = ready!(this.poll_rest(context));
            return Poll::Ready(Some(Err(refusal::of_short(short))));
        };
        this.rest = None;
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            this.held = this.weight.weigh(this.messages.advance(data));
            if let Err(short) = this.call.message(this.held) {
                return Poll::Ready(Some(Err(refusal::of_short(short))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
