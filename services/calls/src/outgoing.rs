//! The client's frames, as the transport asks for them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tripod_proto::tripod::v1 as wire;

use crate::ledger::Next;
use crate::stream::Shared;

/// Frames of a stream. They are made when the transport can take them, so what it cannot take yet gathers.
#[derive(Debug)]
pub(crate) struct Outgoing {
    stream: Arc<Shared>,
    /// The others have had their turn.
    has_yielded: bool,
}

impl Outgoing {
    pub(crate) fn new(stream: Arc<Shared>) -> Self {
        Self { stream, has_yielded: false }
    }
}

impl Stream for Outgoing {
    type Item = wire::Frame;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<wire::Frame>> {
        let this = self.get_mut();
        let mut ledger = this.stream.ledger().lock();
        // An answer has woken its callers and this task at once. If those that run now call again, one frame takes them all.
        let yields = ledger.is_busy() && !this.has_yielded;
        let next = if yields { Next::Nothing } else { ledger.next() };
        let (before, sender) = match next {
            Next::Frame(frame) => {
                this.has_yielded = false;
                return Poll::Ready(Some(frame));
            }
            Next::Over => return Poll::Ready(None),
            Next::Nothing => (ledger.rest(context.waker()), ledger.roused()),
        };
        drop(ledger);
        drop(before);
        if let Some(sender) = sender {
            this.has_yielded = true;
            sender.wake();
        }
        Poll::Pending
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // The transport sends nothing more; what was sent may still be answered.
        self.stream.leave();
    }
}
