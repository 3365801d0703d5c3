//! An answer's body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body, Frame};
use tonic::Status;

use crate::bytes_held::{CALL_BYTES, CallBytes, Charge, Direction, Reserved, Short, Turn};
use crate::refusal;

/// Bytes that h2 is handed at a time. Beyond what the client's windows let through it keeps no more than this of an
/// answer, and that another piece is asked for shows that the client reads.
const PIECE_BYTES: usize = 256 << 10;
/// What an answer's stream takes beside its bytes.
const STREAM_BYTES: u64 = 2 << 10;
/// An answer of so many bytes is given in any case: its call was let in.
const SMALL_BYTES: u64 = CALL_BYTES;

/// An op's answer of so many bytes is no more than what the op holds until its answer is taken.
const OP_ANSWER_BYTES_FREE: usize = 1 << 10;

/// Among the extensions of an answer: its body gathers the answers to ops, which have had their turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gathered;

/// Whose answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Call,
    /// It is put beside others, whole.
    Op,
    /// Frames with the answers to ops. If these waited for room, they would wait for themselves.
    Stream,
}

/// An answer's body whose bytes are counted until h2 has written them. It is not made before its connection has room.
pub struct Content<B> {
    inner: B,
    call: CallBytes,
    of: Of,
    /// Of one that has had to wait.
    turn: Option<Turn>,
    /// What was held for the answer before it was looked for.
    reserved: Option<Charge>,
    /// What is made and was not handed over.
    rest: Option<Made>,
    /// There was no room for it, and its caller has been told.
    is_refused: bool,
}

impl<B> Content<B> {
    /// The answer to a call.
    #[must_use]
    pub fn of(mut answer: Response<B>, call: CallBytes) -> Response<Self> {
        let reserved = answer.extensions_mut().remove::<Reserved>().and_then(|reserved| reserved.take());
        let of = match answer.extensions_mut().remove::<Gathered>() {
            Some(Gathered) => Of::Stream,
            None if call.is_op() => Of::Op,
            None => Of::Call,
        };
        answer.map(|inner| Self { inner, call, of, turn: None, reserved, rest: None, is_refused: false })
    }

    pub(crate) fn inner(&self) -> &B {
        &self.inner
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> B
    where
        B: Clone,
    {
        self.inner.clone()
    }

    /// Ready when the connection has room.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Short>> {
        let account = self.call.account();
        if account.is_open(Direction::Answers) {
            return Poll::Ready(Ok(()));
        }
        self.turn.get_or_insert_with(|| account.turn(Direction::Answers)).poll(context)
    }

    /// Holds the bytes of what has been made.
    fn hold(&mut self, bytes: Bytes) -> Result<Made, Status> {
        let held = bytes.len() as u64 + STREAM_BYTES;
        let reserved = self.reserved.take();
        let charge = match reserved {
            // It was reserved by what is known before; that this is a little more is no reason to refuse it.
            Some(mut charge) => {
                charge.set(held).map_or_else(|_| self.call.account().answer_anyway(held), |()| charge)
            }
            None if held <= SMALL_BYTES || self.of == Of::Stream => self.call.account().answer_anyway(held),
            None => self.call.account().answer(held).map_err(refusal::of_short)?,
        };
        Ok(Made { bytes, charge })
    }
}

impl<B: Body<Data = Bytes, Error = Status> + Unpin> Body for Content<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.is_refused {
            return Poll::Ready(None);
        }
        if let Some(rest) = &mut this.rest {
            let piece = rest.next_piece();
            if rest.bytes.is_empty() {
                this.rest = None;
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if this.reserved.is_none()
            && this.of != Of::Stream
            && let Err(short) = ready!(this.poll_turn(context))
        {
            return Poll::Ready(Some(Err(refusal::of_short(short))));
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end),
        };
        let bytes = match frame.into_data() {
            Ok(bytes) if this.of == Of::Op && bytes.len() <= OP_ANSWER_BYTES_FREE => {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Ok(bytes) if !bytes.is_empty() => bytes,
            Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Err(frame) => return Poll::Ready(Some(Ok(frame))),
        };
        match this.hold(bytes) {
            Ok(made) => {
                let piece_max = if this.of == Of::Op { usize::MAX } else { PIECE_BYTES };
                let piece;
                (piece, this.rest) = made.first_piece(piece_max);
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Err(refusal) => {
                this.is_refused = true;
                Poll::Ready(Some(Ok(Frame::trailers(trailers(&refusal)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_refused || self.rest.is_none() && self.inner.is_end_stream()
    }
}

impl<B> Drop for Content<B> {
    fn drop(&mut self) {
        self.call.end();
    }
}

fn trailers(refusal: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // The text is escaped there, and what metadata there is has come from us.
    let added = refusal.add_header(&mut trailers);
    debug_assert!(added.is_ok(), "{added:?}");
    trailers
}

/// Bytes of an answer that are held.
struct Made {
    bytes: Bytes,
    charge: Charge,
}

impl Made {
    /// What h2 is to be handed first, and the rest: most answers are one piece.
    fn first_piece(mut self, piece_max: usize) -> (Bytes, Option<Self>) {
        if self.bytes.len() > piece_max {
            let piece = self.next_piece();
            return (piece, Some(self));
        }
        self.charge.renew();
        (Bytes::from_owner(self), None)
    }

    /// What h2 is to be handed next. It is held until h2 lets go of it.
    fn next_piece(&mut self) -> Bytes {
        let bytes = self.bytes.split_to(self.bytes.len().min(PIECE_BYTES));
        let held = if self.bytes.is_empty() { u64::MAX } else { bytes.len() as u64 };
        let charge = self.charge.split(held);
        self.charge.renew();
        Bytes::from_owner(Self { bytes, charge })
    }
}

impl AsRef<[u8]> for Made {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
