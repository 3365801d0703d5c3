//! Requests that are one whole message: what can be an op.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, Request, header};
use http_body::{Body as HttpBody, Frame};
use tonic::{Status, body::Body};

use crate::bounds::OP_MESSAGE_BYTES_MAX;
use crate::message_body::{HEAD_BYTES, MessageBody};
use crate::metadata;
use crate::options::CallOptions;

/// Names the compression of a request's message.
const COMPRESSION: &str = "grpc-encoding";
/// Says how long the caller waits.
const TIMEOUT: &str = "grpc-timeout";

/// A request whose only message is here.
#[derive(Debug)]
pub(crate) struct OneMessage {
    head: Parts,
    pub(crate) message: Bytes,
}

/// A body of which something was read already: that comes first.
struct Begun {
    read: VecDeque<Result<Frame<Bytes>, Status>>,
    rest: Body,
}

impl OneMessage {
    /// Takes a request whose only message is here, uncompressed, and no longer than an op's may be. Nothing is waited for: a
    /// generated client has the whole message of a call that has one, and whatever else comes is a stream.
    ///
    /// # Errors
    /// The request as if nothing had been read: it is to go by a call of its own.
    pub(crate) fn of(request: Request<Body>) -> Result<Self, Request<Body>> {
        let (head, mut body) = request.into_parts();
        if head.headers.contains_key(COMPRESSION) {
            return Err(Request::from_parts(head, body));
        }
        let mut read = VecDeque::new();
        match read_all(&mut body, &mut read) {
            Some(message) => Ok(Self { head, message }),
            None => Err(Request::from_parts(head, Body::new(Begun { read, rest: body }))),
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// How long its caller waits, if it says so.
    pub(crate) fn patience(&self) -> Option<Duration> {
        given(self.head.headers.get(TIMEOUT)?.to_str().ok()?)
    }

    pub(crate) fn options(&self) -> CallOptions {
        let mut own = HeaderMap::new();
        for (key, value) in &self.head.headers {
            if !metadata::is_of_the_transport(key) && *key != header::USER_AGENT {
                own.append(key.clone(), value.clone());
            }
        }
        CallOptions { patience: self.patience(), metadata: own, ..CallOptions::default() }
    }

    /// The request again.
    pub(crate) fn into_request(self) -> Request<Body> {
        let body = MessageBody::of(self.message, None).unwrap_or_default();
        Request::from_parts(self.head, Body::new(body))
    }
}

/// The message, if that is all of a body that is here. What was read is noted.
fn read_all(body: &mut Body, read: &mut VecDeque<Result<Frame<Bytes>, Status>>) -> Option<Bytes> {
    // Who reads on polls again, and is woken.
    let mut context = Context::from_waker(Waker::noop());
    let mut pieces = 0;
    let mut bytes = 0;
    loop {
        match Pin::new(&mut *body).poll_frame(&mut context) {
            Poll::Pending => return None,
            Poll::Ready(None) => break,
            Poll::Ready(Some(frame)) => {
                let data = frame.as_ref().ok().and_then(Frame::data_ref).map(Bytes::len);
                read.push_back(frame);
                bytes += data?;
                pieces += 1;
                if bytes > HEAD_BYTES + OP_MESSAGE_BYTES_MAX || pieces > HEAD_BYTES + OP_MESSAGE_BYTES_MAX {
                    return None;
                }
            }
        }
    }
    message_of(read)
}

fn message_of(read: &VecDeque<Result<Frame<Bytes>, Status>>) -> Option<Bytes> {
    let mut pieces = read.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref());
    let mut all = pieces.next()?.clone();
    let rest: Vec<&Bytes> = pieces.filter(|piece| !piece.is_empty()).collect();
    if !rest.is_empty() {
        let mut joined = BytesMut::from(&all[..]);
        rest.into_iter().for_each(|piece| joined.extend_from_slice(piece));
        all = joined.freeze();
    }
    if all.len() < HEAD_BYTES || all.get_u8() != 0 {
        return None;
    }
    let length = usize::try_from(all.get_u32()).ok()?;
    (length == all.len()).then_some(all)
}

/// A time as gRPC writes it: at most eight digits, and a unit.
fn given(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

impl HttpBody for Begun {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.read.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body that ends, or one of which more may come.
    struct Scripted {
        frames: VecDeque<Bytes>,
        ends: bool,
    }

    impl HttpBody for Scripted {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            match self.frames.pop_front() {
                Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn request(frames: &[&[u8]], ends: bool) -> Request<Body> {
        let frames = frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect();
        let request = Request::builder().uri("/a.B/C").header("te", "trailers").header("x-a", "1");
        let request = request.header("grpc-timeout", "250m");
        request.body(Body::new(Scripted { frames, ends })).unwrap()
    }

    fn drained(request: Request<Body>) -> Vec<u8> {
        let mut body = request.into_body();
        let mut context = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            all.extend_from_slice(frame.unwrap().data_ref().unwrap());
        }
        all
    }

    #[test]
    fn one_message_is_taken_in_however_many_pieces_it_comes() {
        for frames in [&[&b"\0\0\0\0\x02ab"[..]][..], &[b"\0\0", b"\0\0\x02", b"", b"ab"]] {
            let one = OneMessage::of(request(frames, true)).unwrap();
            assert_eq!((one.path(), &one.message[..]), ("/a.B/C", &b"ab"[..]));
            let options = one.options();
            assert_eq!(options.patience, Some(Duration::from_millis(250)));
            assert_eq!(options.metadata.keys().map(http::HeaderName::as_str).collect::<Vec<_>>(), ["x-a"]);
            assert_eq!(drained(one.into_request()), b"\0\0\0\0\x02ab");
        }
    }

    #[test]
    fn whatever_else_comes_is_given_back_as_it_came() {
        let long = [&[0, 0, 1, 0, 1][..], &vec![b'a'; OP_MESSAGE_BYTES_MAX + 1]].concat();
        let two = b"\0\0\0\0\x01a\0\0\0\0\x01b";
        let cases: [&[u8]; 5] = [b"", b"\0\0\0\0\x03ab", b"\x01\0\0\0\x02ab", two, &long];
        for case in cases {
            assert_eq!(drained(OneMessage::of(request(&[case], true)).unwrap_err()), case);
        }
        let streams = OneMessage::of(request(&[b"\0\0\0\0\x02ab"], false)).unwrap_err();
        assert_eq!(drained(streams), b"\0\0\0\0\x02ab");
        let mut packed = request(&[b"\0\0\0\0\x02ab"], true);
        packed.headers_mut().insert(COMPRESSION, header::HeaderValue::from_static("gzip"));
        assert_eq!(drained(OneMessage::of(packed).unwrap_err()), b"\0\0\0\0\x02ab");
    }

    #[test]
    fn times_are_read_as_grpc_writes_them() {
        let read = ["1H", "2M", "3S", "4m", "5u", "6n", "99999999S"].map(|text| given(text).unwrap());
        assert_eq!(read[0], Duration::from_secs(3600));
        assert_eq!(read[5], Duration::from_nanos(6));
        for text in ["", "S", "5", "5s", "-1S", "999999999S", "5é"] {
            assert_eq!(given(text), None, "{text:?}");
        }
    }
}
