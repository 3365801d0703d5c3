//! Answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tripod_port::{Account, Charge};

/// The body of an answer, counted until it is taken.
pub(super) struct Told {
    bytes: Option<Bytes>,
    _held: Charge,
}

/// An answer: one object, its keys in their order, without spaces.
pub(super) fn answer(account: &Account, status: StatusCode, told: &Value) -> Response<Told> {
    let bytes = Bytes::from(told.to_string());
    let held = account.answer_anyway(bytes.len() as u64);
    let mut answer = Response::new(Told { bytes: Some(bytes), _held: held });
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

impl Body for Told {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
