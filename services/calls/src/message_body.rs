//! Bodies with one message, or with none.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// gRPC's head of a message: whether it is compressed, and its length in four bytes.
pub(crate) const HEAD_BYTES: usize = 5;

/// A body of one message, and the trailers behind it if it is an answer's.
#[derive(Debug, Default)]
pub(crate) struct MessageBody {
    head: Option<Bytes>,
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl MessageBody {
    /// `None`: the message is too long for its head.
    pub(crate) fn of(message: Bytes, trailers: Option<HeaderMap>) -> Option<Self> {
        let mut head = BytesMut::with_capacity(HEAD_BYTES);
        head.put_u8(0);
        head.put_u32(u32::try_from(message.len()).ok()?);
        Some(Self { head: Some(head.freeze()), message: Some(message), trailers })
    }
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.head.take().or_else(|| self.message.take().filter(|message| !message.is_empty()));
        let frame = data.map(Frame::data).or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.head.is_none() && self.message.as_ref().is_none_or(Bytes::is_empty) && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = [&self.head, &self.message].into_iter().flatten().map(Bytes::len).sum::<usize>();
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
