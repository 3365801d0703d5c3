//! A response as the answer to an op.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response};
use http_body::Body as _;
use tonic::{Code, Status};
use tripod_proto::tripod::v1 as wire;

use super::headers;
use crate::bodies::AnswerBody;
use crate::holding::Content;
use crate::under_way::Answer;

/// gRPC's head of a message.
const HEAD_BYTES: usize = 5;

/// A response that is read.
pub(super) struct Reading {
    head: HeaderMap,
    body: Answer<Content<AnswerBody>>,
    /// What has come of the body.
    came: Option<Came>,
}

/// Bytes of a message with its head.
enum Came {
    /// In one piece, as nearly all come.
    Piece(Bytes),
    Pieces(BytesMut),
}

impl Reading {
    pub(super) fn of(response: Response<Answer<Content<AnswerBody>>>) -> Self {
        let (head, body) = response.into_parts();
        Self { head: head.headers, body, came: None }
    }

    /// Ready when all has come. The tag is to be set.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<wire::Answer> {
        if self.head.contains_key(Status::GRPC_STATUS) {
            return Poll::Ready(of_trailers(&self.head));
        }
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(status)) => return Poll::Ready(of_status(&status)),
                None => return Poll::Ready(of_status(&Status::unknown("the answer has no status"))),
            };
            match frame.into_data() {
                Ok(bytes) => {
                    self.take(bytes);
                    if matches!(self.body.inner().inner(), AnswerBody::Whole(_)) {
                        // What comes behind it is known.
                        return Poll::Ready(self.answered(None));
                    }
                    if self.is_beyond() {
                        let status =
                            Status::unimplemented("the call has more than one answer; make it by itself");
                        return Poll::Ready(of_status(&status));
                    }
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return Poll::Ready(self.answered(Some(&trailers)));
                }
            }
        }
    }

    fn take(&mut self, bytes: Bytes) {
        self.came = Some(match self.came.take() {
            None => Came::Piece(bytes),
            Some(Came::Piece(before)) => {
                let mut pieces = BytesMut::with_capacity(before.len() + bytes.len());
                pieces.extend_from_slice(&before);
                pieces.extend_from_slice(&bytes);
                Came::Pieces(pieces)
            }
            Some(Came::Pieces(mut pieces)) => {
                pieces.extend_from_slice(&bytes);
                Came::Pieces(pieces)
            }
        });
    }

    /// Whether more has come than one message.
    fn is_beyond(&self) -> bool {
        let came: &[u8] = match &self.came {
            None => &[],
            Some(Came::Piece(piece)) => piece,
            Some(Came::Pieces(pieces)) => pieces,
        };
        announced(came).is_some_and(|length| came.len() > HEAD_BYTES + length)
    }

    fn answered(&mut self, trailers: Option<&HeaderMap>) -> wire::Answer {
        let mut answer = match trailers {
            Some(trailers) if trailers.contains_key(Status::GRPC_STATUS) => of_trailers(trailers),
            Some(_) => of_status(&Status::unknown("the answer has no status")),
            None => wire::Answer::default(),
        };
        headers::tell(&self.head, &mut answer.metadata);
        if answer.code != 0 {
            return answer;
        }
        let came = match self.came.take() {
            None => Bytes::new(),
            Some(Came::Piece(piece)) => piece,
            Some(Came::Pieces(pieces)) => pieces.freeze(),
        };
        match announced(&came) {
            Some(length) if came.len() == HEAD_BYTES + length => {
                answer.message = came.slice(HEAD_BYTES..);
                answer
            }
            // Of a method with answers that come one by one, and there was none.
            None if came.is_empty() => of_status(&Status::unimplemented("the call has no answer of its own")),
            _ => of_status(&Status::unknown("the answer is no message")),
        }
    }
}

/// How long the first message is, if its head has come and it is not compressed.
fn announced(bytes: &[u8]) -> Option<usize> {
    let (head, _) = bytes.split_at_checked(HEAD_BYTES)?;
    let (&[flag], length) = head.split_first_chunk()?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    (flag == 0).then_some(usize::try_from(length).ok()?)
}

/// The answer to an op that was not called.
pub(super) fn of_status(status: &Status) -> wire::Answer {
    let mut metadata = Vec::new();
    headers::tell(status.metadata().as_ref(), &mut metadata);
    wire::Answer {
        code: status.code().into(),
        text: status.message().to_owned(),
        details: Bytes::copy_from_slice(status.details()),
        metadata,
        ..Default::default()
    }
}

fn of_trailers(trailers: &HeaderMap) -> wire::Answer {
    let is_plain = trailers.len() == 1 && trailers.get(Status::GRPC_STATUS).is_some_and(|code| code == "0");
    if is_plain {
        return wire::Answer::default();
    }
    let status = Status::from_header_map(trailers);
    of_status(&status.unwrap_or_else(|| Status::new(Code::Unknown, "the answer has no status")))
}
