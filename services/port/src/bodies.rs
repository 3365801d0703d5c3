//! Bodies of requests as they come to a port, and of answers as its services make them: each a plain type for the common
//! case, so that nothing is boxed for a call.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tonic::Status;

/// The body of a request, as it comes from a connection.
#[derive(Debug)]
pub enum RequestBody {
    /// By a connection of this port.
    Incoming(Incoming),
    /// As an op of a stream of calls: its message with its head, until that is taken.
    Op(Option<Bytes>),
    /// By another transport.
    Other(tonic::body::Body),
}

/// The body of an answer, as a service makes it.
#[derive(Debug)]
pub enum AnswerBody {
    /// One message, and that all is well.
    Whole(Whole),
    /// Anything else.
    Other(tonic::body::Body),
}

/// A message with its head, and the trailers that say that all is well.
#[derive(Debug)]
pub struct Whole {
    message: Option<Bytes>,
    is_ended: bool,
}

impl Whole {
    /// The body of this message, with its head.
    #[must_use]
    pub(crate) fn of(message: Bytes) -> Self {
        Self { message: Some(message), is_ended: false }
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        if let Some(message) = self.message.take() {
            return Some(Frame::data(message));
        }
        if std::mem::replace(&mut self.is_ended, true) {
            return None;
        }
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
        Some(Frame::trailers(trailers))
    }
}

impl Default for AnswerBody {
    fn default() -> Self {
        Self::Other(tonic::body::Body::empty())
    }
}

impl From<tonic::body::Body> for AnswerBody {
    fn from(body: tonic::body::Body) -> Self {
        Self::Other(body)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut *self {
            Self::Incoming(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(|error| Status::from_error(Box::new(error)))))
            }
            Self::Op(message) => Poll::Ready(message.take().map(|message| Ok(Frame::data(message)))),
            Self::Other(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Incoming(body) => body.is_end_stream(),
            Self::Op(message) => message.is_none(),
            Self::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Incoming(body) => body.size_hint(),
            Self::Op(message) => {
                SizeHint::with_exact(message.as_ref().map_or(0, |message| message.len() as u64))
            }
            Self::Other(body) => body.size_hint(),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut *self {
            Self::Whole(whole) => Poll::Ready(whole.next().map(Ok)),
            Self::Other(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_ended,
            Self::Other(body) => body.is_end_stream(),
        }
    }

    /// As long as answers of tonic's say: that their length is not known. A length would become a header of its own.
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(_) => SizeHint::default(),
            Self::Other(body) => body.size_hint(),
        }
    }
}
