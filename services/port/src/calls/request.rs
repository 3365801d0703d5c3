//! An op as a request.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, Request, Version};
use tonic::Status;
use tripod_proto::metadata;
use tripod_proto::tripod::v1 as wire;

use super::hello::Hello;
use super::paths::Path;
use super::{headers, refused};
use crate::bodies::RequestBody;

/// gRPC's head of a message: whether it is compressed, and its length in four bytes.
const HEAD_BYTES: usize = 5;
/// The largest number that a header of gRPC can say.
const TIMEOUT_MAX: u32 = 99_999_999;

static STAMP: HeaderName = HeaderName::from_static(metadata::STAMP);
static TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The request that the call itself would be.
///
/// # Errors
/// It has a sequence and no session, or its metadata cannot be said.
pub(super) fn of(op: wire::Op, path: &Path, hello: &Hello) -> Result<Request<RequestBody>, Status> {
    let wire::Op { message, sequence, acknowledged_below, patience_ms, metadata, .. } = op;
    let mut request = Request::new(RequestBody::Op(Some(framed(&message)?)));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = path.uri.clone();
    let mut all = hello.headers.clone();
    if !metadata.is_empty() {
        headers::put(&mut all, metadata)?;
    }
    if sequence > 0 {
        let Some(session) = &hello.session else {
            return Err(refused::misused("an op has a sequence, and the hello named no session"));
        };
        if all.contains_key(&STAMP) {
            return Err(refused::misused(
                "an op has a sequence, and a stamp in its metadata; send one of them",
            ));
        }
        let stamp = format!("{session}.{sequence}.{acknowledged_below}");
        all.insert(&STAMP, printable(stamp)?);
    }
    if patience_ms > 0 {
        let timeout = match patience_ms {
            ..=TIMEOUT_MAX => format!("{patience_ms}m"),
            _ => format!("{}S", patience_ms.div_ceil(1_000)),
        };
        all.insert(&TIMEOUT, printable(timeout)?);
    }
    *request.headers_mut() = all;
    Ok(request)
}

/// Whether an op bears a stamp, as whatever changes something does that its caller may send again.
pub(super) fn is_stamped(op: &wire::Op) -> bool {
    op.sequence > 0 || op.metadata.iter().any(|entry| entry.key == metadata::STAMP)
}

fn printable(text: String) -> Result<HeaderValue, Status> {
    HeaderValue::try_from(text).map_err(|_| refused::misused("a number is no header"))
}

/// A message with its head, as calls of their own have it. It is a copy, so that what keeps it does not keep its frame.
fn framed(message: &Bytes) -> Result<Bytes, Status> {
    let length = u32::try_from(message.len()).map_err(|_| refused::misused("a message is too long"))?;
    let mut framed = BytesMut::with_capacity(HEAD_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.extend_from_slice(message);
    Ok(framed.freeze())
}

#[cfg(test)]
mod tests {
    use tonic::service::Routes;

    use super::*;
    use crate::calls::paths::Paths;
    use crate::followed::Followed;
    use crate::manner::Manners;
    use crate::stop::Stopping;

    fn request(op: wire::Op, hello: wire::Hello) -> Result<Request<RequestBody>, Status> {
        let services = Followed::new(Routes::default(), Vec::new(), Manners::default(), &Stopping::never());
        let mut paths = Paths::new("http://train.host:7700/tripod.v1.Calls/Open".parse().unwrap());
        paths.name("/a.B/C", &services).unwrap();
        of(op, paths.find(1).unwrap(), &Hello::of(hello).unwrap())
    }

    fn hello(session: &str) -> wire::Hello {
        let job = wire::Metadata { key: metadata::JOB.to_owned(), value: "train".to_owned() };
        wire::Hello { metadata: vec![job], session: session.to_owned() }
    }

    #[test]
    fn an_op_is_the_request_that_its_call_would_be() {
        let op = wire::Op {
            message: Bytes::from_static(b"hello"),
            sequence: 12,
            acknowledged_below: 9,
            patience_ms: 1_500,
            ..Default::default()
        };
        let request = request(op, hello("7")).unwrap();
        assert_eq!(request.uri(), "http://train.host:7700/a.B/C");
        let header = |name: &str| request.headers()[name].to_str().unwrap();
        assert_eq!([header("te"), header("content-type")], ["trailers", "application/grpc"]);
        assert_eq!([header(metadata::JOB), header(metadata::STAMP)], ["train", "7.12.9"]);
        assert_eq!((header("grpc-timeout"), request.headers().len()), ("1500m", 5));
        let RequestBody::Op(Some(message)) = request.into_body() else { panic!("it is an op") };
        assert_eq!(&message[..], b"\0\0\0\0\x05hello");
    }

    #[test]
    fn what_an_op_does_not_say_is_no_header() {
        let request = request(wire::Op::default(), hello("")).unwrap();
        assert_eq!(request.headers().len(), 3);
    }

    #[test]
    fn the_longest_patience_is_said_in_seconds_and_is_no_shorter() {
        let said = |patience_ms| {
            let op = wire::Op { patience_ms, ..Default::default() };
            let request = request(op, hello("")).unwrap();
            crate::deadline::given(request.headers()).expect("a time")
        };
        assert_eq!(said(99_999_999).as_millis(), 99_999_999);
        assert_eq!(said(u32::MAX).as_secs(), u64::from(u32::MAX).div_ceil(1_000));
    }

    #[test]
    fn a_sequence_without_a_session_and_two_stamps_are_refused() {
        let op = wire::Op { sequence: 1, ..Default::default() };
        let status = request(op.clone(), hello("")).unwrap_err();
        assert!(status.message().contains("no session"), "{status:?}");
        let stamp = wire::Metadata { key: metadata::STAMP.to_owned(), value: "7.1.1".to_owned() };
        let twice = wire::Op { metadata: vec![stamp.clone()], ..op };
        let status = request(twice, hello("7")).unwrap_err();
        assert!(status.message().contains("one of them"), "{status:?}");
        let once = wire::Op { metadata: vec![stamp], ..Default::default() };
        assert_eq!(request(once, hello("7")).unwrap().headers()[metadata::STAMP], "7.1.1");
    }
}
