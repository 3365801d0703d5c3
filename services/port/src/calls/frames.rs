//! The body of a stream's response: frames as they are made up, and at last the status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::task::AbortHandle;
use tonic::Status;

use super::outbox::{Next, Outbox};
use super::tally::StreamTally;

/// A stream ends with the body of its response: nobody would hear its answers any more.
pub(super) struct Frames {
    outbox: Arc<Outbox>,
    task: AbortHandle,
    tally: StreamTally,
    is_ended: bool,
}

impl Frames {
    pub(super) fn new(outbox: Arc<Outbox>, task: AbortHandle, tally: StreamTally) -> Self {
        Self { outbox, task, tally, is_ended: false }
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let frame = match ready!(self.outbox.poll_next(context)) {
            Next::Frame(bytes) => {
                self.tally.note_frame_out();
                Frame::data(bytes)
            }
            Next::End(status) => {
                self.is_ended = true;
                let mut trailers = HeaderMap::new();
                // The text is escaped there, and what metadata there is has come from us.
                let added = status.add_header(&mut trailers);
                debug_assert!(added.is_ok(), "{added:?}");
                Frame::trailers(trailers)
            }
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.task.abort();
    }
}
