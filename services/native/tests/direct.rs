//! What is called past the router is answered in the same words as by it.

mod common;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes};
use http::Request;
use http_body::{Body as HttpBody, Frame};
use prost::Message;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tripod_gateway::{FrontEnd as _, Gateway, JobBinding};
use tripod_native::{MANNERS, Native};
use tripod_port::{Followed, Manners, Stopping};
use tripod_proto::tripod::v1 as wire;
use tripod_state::ids::ServiceIncarnation;
use tripod_state::{Command, job};

const PUT: &str = "/tripod.v1.Kv/Put";
const GET: &str = "/tripod.v1.Kv/Get";

/// A request's body, frame by frame.
struct Scripted(VecDeque<Bytes>);

impl HttpBody for Scripted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.pop_front().map(|frame| Ok(Frame::data(frame))))
    }
}

/// Calls of one client, in their order.
struct Calls {
    services: Followed,
}

impl Calls {
    /// To a gateway of their own, past the router where there is such a way.
    async fn new(is_direct: bool) -> Self {
        let (gateway, _backend) = Gateway::in_memory();
        let spec = job::Spec::of_tasks(1);
        let create = job::Command::Create { name: "default".into(), spec, service: ServiceIncarnation(7) };
        gateway.submit(Command::Job(create)).await.expect("no outage").expect("not refused");
        let binding = JobBinding::Named("default".to_owned());
        let direct = if is_direct { Native::alone(gateway.clone()).direct(&binding) } else { Vec::new() };
        assert_eq!(direct.is_empty(), !is_direct);
        let manners = Manners::of(&[MANNERS]);
        Self { services: Followed::new(common::routes(&gateway), direct, manners, &Stopping::never()) }
    }

    /// All that the client hears.
    async fn call(&mut self, path: &str, encoding: Option<&'static str>, frames: &[Vec<u8>]) -> String {
        let frames = frames.iter().cloned().map(Bytes::from).collect();
        let mut request = Request::builder().method("POST").uri(path);
        if let Some(encoding) = encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let request = request.body(Body::new(Scripted(frames))).expect("a request");
        let answer = self.services.call(request).await.expect("there is no error");
        let (head, mut body) = answer.into_parts();
        let mut heard = vec![format!("{} {:?} {:?}", head.status, head.version, sorted(&head.headers))];
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            heard.push(match frame.expect("a frame").into_data() {
                Ok(data) => format!("{data:?}"),
                Err(frame) => format!("{:?}", sorted(frame.trailers_ref().expect("trailers"))),
            });
        }
        heard.join("\n")
    }
}

fn sorted(headers: &http::HeaderMap) -> Vec<String> {
    let mut sorted: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    sorted.sort();
    sorted
}

fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    let mut bytes = vec![0];
    bytes.put_u32(u32::try_from(message.len()).expect("a small message"));
    bytes.extend(message);
    bytes
}

fn put(key: &str, job: &str) -> wire::PutRequest {
    wire::PutRequest {
        job: job.to_owned(),
        key: key.to_owned(),
        value: Bytes::from_static(b"value"),
        ..Default::default()
    }
}

fn get(key: &str, consistency: i32) -> Vec<u8> {
    framed(&wire::GetRequest { key: key.to_owned(), consistency, ..Default::default() })
}

/// Path, encoding and frames of a call.
type Kind = (&'static str, Option<&'static str>, Vec<Vec<u8>>);

/// Every kind of call that there is.
fn calls() -> Vec<Kind> {
    let plain = framed(&put("a", ""));
    let (begin, rest) = plain.split_at(7);
    let mut packed = plain.clone();
    packed[0] = 1;
    let stamp = wire::Stamp { sequence: 0, ..Default::default() };
    let badly_stamped = framed(&wire::PutRequest { stamp: Some(stamp), ..put("a", "") });
    let only_new = framed(&wire::PutRequest { create_only: true, ..put("a", "") });
    let delete = framed(&wire::DeleteRequest { key: "a".to_owned(), ..Default::default() });
    vec![
        (PUT, None, vec![plain.clone()]),
        (PUT, None, vec![plain.clone(), Vec::new()]),
        (PUT, None, vec![begin.to_vec(), rest.to_vec()]),
        (PUT, None, vec![plain.clone(), plain.clone()]),
        (PUT, None, vec![[plain.clone(), vec![0]].concat()]),
        (PUT, None, vec![begin.to_vec()]),
        (PUT, None, Vec::new()),
        (PUT, None, vec![vec![0, 0, 0, 0, 2, 0x0a, 9]]),
        (PUT, None, vec![vec![0, 255, 255, 255, 255]]),
        (PUT, None, vec![packed.clone()]),
        (PUT, Some("gzip"), vec![plain.clone()]),
        (PUT, Some("gzip"), vec![packed]),
        (PUT, Some("identity"), vec![plain.clone()]),
        (PUT, Some("zstd"), vec![plain.clone()]),
        (PUT, None, vec![only_new]),
        (PUT, None, vec![badly_stamped]),
        (PUT, None, vec![framed(&put("a", "none"))]),
        (PUT, None, vec![framed(&put(&"k".repeat(100_000), ""))]),
        (GET, None, vec![get("a", 0)]),
        (GET, None, vec![get("a", 1), Vec::new()]),
        (GET, None, vec![get("a", 7)]),
        (GET, None, vec![get("none", 0)]),
        (GET, Some("gzip"), vec![get("a", 0)]),
        ("/tripod.v1.Kv/Delete", None, vec![delete]),
        ("/tripod.v1.Kv/List", None, vec![framed(&wire::ListRequest::default())]),
        ("/tripod.v1.Kv/Newer", None, vec![plain.clone()]),
        ("/tripod.v1.Kv/", None, vec![plain.clone()]),
        ("/tripod.v1.Kv", None, vec![plain]),
    ]
}

#[tokio::test]
async fn every_call_past_the_router_is_answered_in_the_words_of_the_one_by_it() {
    let (mut direct, mut routed) = (Calls::new(true).await, Calls::new(false).await);
    for (path, encoding, frames) in calls() {
        let heard = direct.call(path, encoding, &frames).await;
        let expected = routed.call(path, encoding, &frames).await;
        assert_eq!(heard, expected, "{path} {encoding:?} {frames:?}");
    }
}

#[tokio::test]
async fn a_put_and_a_get_past_the_router_are_answered_whole() {
    let mut calls = Calls::new(true).await;
    let answer = calls.call(PUT, None, &[framed(&put("a", ""))]).await;
    assert!(answer.contains(r#"grpc-status: \"0\""#), "{answer}");
    let answer = calls.call(GET, None, &[get("a", 0)]).await;
    assert!(answer.contains("value") && answer.contains(r#"grpc-status: \"0\""#), "{answer}");
}
