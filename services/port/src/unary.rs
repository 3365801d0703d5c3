//! Calls of one message and one answer, read and written in one piece.
//!
//! Most requests of such calls are one small frame. Whoever serves a method that is called ten thousand times a second reads
//! them here: without a stream, its buffers and its boxes. Whatever is not so small and plain is given back as it came, for
//! the service that was generated, whose every refusal and text stays the only one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use prost::Message;
use tonic::Status;

use crate::bodies::{AnswerBody, Whole};
use crate::overlong::MESSAGE_BYTES_MAX;

/// gRPC's head of a message: whether it is compressed, and its length in four bytes.
const HEAD_BYTES: usize = 5;
/// Names the compression of a request's message.
const COMPRESSION: &str = "grpc-encoding";

/// The body of a request of which something was read already: that comes first.
#[derive(Debug)]
pub struct Begun<B> {
    /// What was read and not taken, in its order.
    read: VecDeque<Result<Frame<Bytes>, Status>>,
    rest: B,
}

/// A request as it is read: with its message, if it is plain, or else as if nothing had been read. In a box of its own, which is
/// gone when the call is made: the call may wait for hours, and a request with its body takes several times in it.
pub type Reading<M, B> = Pin<Box<dyn Future<Output = Result<Request<M>, Request<Begun<B>>>> + Send>>;

/// Reads a request for [`call`], as soon as that is polled.
#[must_use]
pub fn reading<M, B>(request: Request<B>) -> Reading<M, B>
where
    M: Message + Default + 'static,
    B: Body<Data = Bytes, Error = Status> + Unpin + Send + 'static,
{
    Box::pin(read(request))
}

/// Has a call that is plain answered by `own`, and any other by the service that was generated.
pub async fn call<M, R, B, Own, Generated>(
    reading: Reading<M, B>,
    own: impl FnOnce(tonic::Request<M>) -> Own,
    generated: impl FnOnce(Request<Begun<B>>) -> Generated,
) -> Response<AnswerBody>
where
    R: Message,
    Own: Future<Output = Result<tonic::Response<R>, Status>>,
    Generated: Future<Output = Result<Response<tonic::body::Body>, Infallible>>,
{
    let request = match reading.await {
        Ok(request) => request,
        Err(request) => {
            return match generated(request).await {
                Ok(answer) => answer.map(AnswerBody::Other),
                Err(never) => match never {},
            };
        }
    };
    answer(own(tonic::Request::from_http(request)).await)
}

/// The request with its message, if that has come in one frame, uncompressed, and nothing else comes.
///
/// # Errors
/// The request as if nothing had been read: it is to be served by the service that was generated.
pub(crate) async fn read<M, B>(request: Request<B>) -> Result<Request<M>, Request<Begun<B>>>
where
    M: Message + Default,
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    let (parts, mut body) = request.into_parts();
    let given_back = |parts, read: Vec<Result<Frame<Bytes>, Status>>, rest| {
        Request::from_parts(parts, Begun { read: read.into(), rest })
    };
    if parts.headers.contains_key(COMPRESSION) {
        return Err(given_back(parts, Vec::new(), body));
    }
    let data = match next(&mut body).await {
        Some(Ok(frame)) => match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return Err(given_back(parts, vec![Ok(frame)], body)),
        },
        other => return Err(given_back(parts, other.into_iter().collect(), body)),
    };
    let Some(message) = message_of(&data) else {
        return Err(given_back(parts, vec![Ok(Frame::data(data))], body));
    };
    while !body.is_end_stream() {
        match next(&mut body).await {
            None => break,
            // Some clients end a request by a frame of its own.
            Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
            Some(other) => return Err(given_back(parts, vec![Ok(Frame::data(data)), other], body)),
        }
    }
    match M::decode(message) {
        Ok(message) => Ok(Request::from_parts(parts, message)),
        Err(_) => Err(given_back(parts, vec![Ok(Frame::data(data))], body)),
    }
}

/// The answer to a call that was [`read`].
pub(crate) fn answer<M: Message>(answer: Result<tonic::Response<M>, Status>) -> Response<AnswerBody> {
    let (metadata, message, extensions) = match answer {
        Ok(answer) => answer.into_parts(),
        Err(status) => return status.into_http(),
    };
    let length = message.encoded_len();
    let Ok(announced) = u32::try_from(length) else {
        let text = format!("Cannot return body with more than 4GB of data but got {length} bytes");
        return Status::resource_exhausted(text).into_http();
    };
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES + length);
    bytes.put_u8(0);
    bytes.put_u32(announced);
    message.encode_raw(&mut bytes);
    let mut response = Response::new(AnswerBody::Whole(Whole::of(bytes.freeze())));
    *response.version_mut() = http::Version::HTTP_2;
    *response.headers_mut() = metadata.into_headers();
    *response.extensions_mut() = extensions;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

async fn next<B>(body: &mut B) -> Option<Result<Frame<Bytes>, Status>>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// The one message of these bytes, if they are exactly that.
fn message_of(data: &Bytes) -> Option<Bytes> {
    let (head, message) = data.split_at_checked(HEAD_BYTES)?;
    let (&[flag], length) = head.split_first_chunk()?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    // Whoever takes less than such a message refuses the rest of it by itself.
    let is_whole =
        flag == 0 && message.len() <= MESSAGE_BYTES_MAX && u32::try_from(message.len()) == Ok(length);
    is_whole.then(|| data.slice(HEAD_BYTES..))
}

impl<B> Body for Begun<B>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
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

    fn size_hint(&self) -> SizeHint {
        if self.read.is_empty() { self.rest.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use http::HeaderMap;

    use super::*;

    type Frames = VecDeque<Result<Frame<Bytes>, Status>>;

    /// A body that says that it has ended only when it is asked for more.
    #[derive(Debug)]
    struct Scripted(Frames);

    impl Body for Scripted {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.pop_front())
        }
    }

    fn data(bytes: impl Into<Bytes>) -> Result<Frame<Bytes>, Status> {
        Ok(Frame::data(bytes.into()))
    }

    /// A message of prost's for a string, with its head.
    fn message(text: &str) -> Vec<u8> {
        let message = text.to_owned().encode_to_vec();
        let mut bytes = vec![0];
        bytes.put_u32(u32::try_from(message.len()).unwrap());
        bytes.extend(message);
        bytes
    }

    fn request(frames: Vec<Result<Frame<Bytes>, Status>>) -> Request<Scripted> {
        Request::builder().uri("/a.B/C").header("x-job", "train").body(Scripted(frames.into())).unwrap()
    }

    fn read_now(frames: Vec<Result<Frame<Bytes>, Status>>) -> Result<String, Request<Begun<Scripted>>> {
        let read = read(request(frames)).now_or_never().expect("nothing is waited for");
        read.map(|request| {
            assert_eq!(request.headers()["x-job"], "train");
            request.into_body()
        })
    }

    /// Everything that is left, as text.
    fn drained(request: Request<Begun<Scripted>>) -> String {
        assert_eq!(
            (request.uri().path(), &request.headers()["x-job"]),
            ("/a.B/C", &"train".parse().unwrap())
        );
        let mut body = request.into_body();
        let mut seen = Vec::new();
        while let Some(frame) = next(&mut body).now_or_never().expect("nothing is waited for") {
            seen.push(format!("{frame:?}"));
        }
        seen.join(" ")
    }

    #[test]
    fn a_message_in_one_frame_is_read_also_if_the_end_comes_in_a_frame_of_its_own() {
        for frames in [vec![data(message("hello"))], vec![data(message("hello")), data(""), data("")]] {
            assert_eq!(read_now(frames).unwrap(), "hello");
        }
    }

    #[test]
    fn whatever_else_comes_is_given_back_as_it_came() {
        let (head, rest) = (message("hello")[..3].to_vec(), message("hello")[3..].to_vec());
        let mut packed = message("hello");
        packed[0] = 1;
        let long = [message("hello"), vec![0]].concat();
        let broken = [&[0, 0, 0, 0, 2][..], &[0x0a, 9]].concat();
        let again = vec![message("hello"), message("again")];
        for pieces in [vec![], vec![head, rest], vec![packed], vec![long], vec![broken], again] {
            let frames = || pieces.iter().cloned().map(data);
            let expected: Vec<String> = frames().map(|frame| format!("{frame:?}")).collect();
            assert_eq!(drained(read_now(frames().collect()).unwrap_err()), expected.join(" "));
        }
        let trailers = Ok(Frame::trailers(HeaderMap::new()));
        assert!(drained(read_now(vec![data(message("hello")), trailers]).unwrap_err()).contains("Trailers"));
        assert!(drained(read_now(vec![Err(Status::cancelled("gone"))]).unwrap_err()).contains("gone"));
    }

    #[test]
    fn what_says_that_it_is_compressed_is_not_even_begun() {
        let request = Request::builder().uri("/a.B/C").header(COMPRESSION, "gzip");
        let request = request.body(Scripted([data(message("hello"))].into())).unwrap();
        let given_back =
            read::<String, _>(request).now_or_never().expect("nothing is waited for").unwrap_err();
        assert!(given_back.body().read.is_empty() && given_back.body().rest.0.len() == 1);
    }

    #[test]
    fn a_message_that_no_service_takes_is_given_back() {
        let longest = |bytes: usize| {
            let mut data = vec![0; HEAD_BYTES + bytes];
            data[1..HEAD_BYTES].copy_from_slice(&u32::try_from(bytes).unwrap().to_be_bytes());
            message_of(&data.into())
        };
        assert!(longest(MESSAGE_BYTES_MAX).is_some() && longest(MESSAGE_BYTES_MAX + 1).is_none());
    }

    #[test]
    fn a_plain_call_is_made_with_its_metadata_and_any_other_goes_to_the_service_that_was_generated() {
        let told = |frames| {
            let own = |request: tonic::Request<String>| async move {
                let job = request.metadata().get("x-job").cloned().expect("it was sent");
                let mut answer = tonic::Response::new(request.into_inner());
                answer.metadata_mut().insert("x-job", job);
                answer.extensions_mut().insert("kept");
                Ok(answer)
            };
            let generated = |request| async move {
                let mut answer = Response::new(tonic::body::Body::empty());
                let left = drained(request).parse().expect("what is left can be said in a header");
                answer.headers_mut().insert("x-left", left);
                Ok(answer)
            };
            let answer = call(reading(request(frames)), own, generated).now_or_never();
            answer.expect("nothing is waited for")
        };
        let own = told(vec![data(message("hello"))]);
        assert_eq!((own.headers().len(), &own.headers()["x-job"]), (2, &"train".parse().unwrap()));
        assert_eq!(own.extensions().get::<&str>(), Some(&"kept"));
        assert!(matches!(own.body(), AnswerBody::Whole(_)));
        let other = told(vec![data(vec![0, 1])]);
        assert!(other.headers()["x-left"].to_str().unwrap().contains("Data"), "{other:?}");
    }

    /// A body with which a request is larger than all else of a call.
    struct Large([u8; 4096]);

    impl Body for Large {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.is_empty().then(|| data("")))
        }
    }

    #[test]
    fn what_a_request_is_read_with_is_no_part_of_its_call() {
        let own = |request: tonic::Request<String>| async { Ok(tonic::Response::new(request.into_inner())) };
        let generated = |_: Request<Begun<Large>>| std::future::pending();
        let call = call(reading(Request::new(Large([0; 4096]))), own, generated);
        let (bytes, request) = (size_of_val(&call), size_of::<Request<Large>>());
        assert!(bytes < 2 * request, "a call takes {bytes} bytes, and its request {request}");
    }

    #[test]
    fn an_answer_is_a_message_and_then_the_word_that_all_is_well() {
        let response = answer(Ok(tonic::Response::new("hello".to_owned())));
        assert_eq!(response.headers()["content-type"], "application/grpc");
        let mut body = response.into_body();
        let mut frame = || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).now_or_never().unwrap();
        assert_eq!(frame().unwrap().unwrap().into_data().unwrap(), message("hello"));
        let trailers = frame().unwrap().unwrap().into_trailers().unwrap();
        assert_eq!((trailers.len(), &trailers["grpc-status"]), (1, &HeaderValue::from_static("0")));
        assert!(frame().is_none());
    }

    #[test]
    fn a_refusal_has_no_message() {
        let response = answer::<String>(Err(Status::not_found("nothing")));
        assert!(response.body().is_end_stream());
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!((status.code(), status.message()), (tonic::Code::NotFound, "nothing"));
    }
}
