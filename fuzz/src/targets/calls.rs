//! Frames of a stream of calls, as a client of a node's port sends them.
//!
//! ```text
//! level u8
//! frame*: length u16 LE, message
//! ```

use std::sync::LazyLock;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream;
use http::Request;
use http_body_util::{BodyExt as _, StreamBody};
use prost::Message as _;
use tonic::body::Body;
use tower::ServiceExt as _;
use tripod_gateway::Replica as _;
use tripod_port::{CALLS_PATH, ConnectionCalls, Followed, Grpc, Served, Stopping};
use tripod_proto::tripod::v1 as wire;
use tripod_state::ids::FeatureLevel;
use tripod_state::level;

use crate::message::{self, Method, methods};
use crate::node::Node;
use crate::source::Source;
use crate::target::Target;
use crate::{mutate, pieces, runtime};

/// What one stream carries.
pub(crate) const FRAMES: Target = Target {
    name: "calls",
    what: "frames of many calls by one stream",
    generate,
    run: |input| _ = run(input),
};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    methods(&[
        "xla.coordination.CoordinationService",
        "tensorflow.CoordinationService",
        "xla.DistributedRuntimeService",
        "tripod.v1.Jobs",
        "tripod.v1.Kv",
        "tripod.v1.Sessions",
        "tripod.v1.Calls",
        "tripod.v1.Ray",
        "mars.v1.Scheduler",
    ])
});

/// Of the first frames, which name all paths.
const SESSIONS: &[&str] = &["", "4242", "340282366920938463463374607431768211455", "x"];
/// Simulated time after a frame, and after the last one.
const BETWEEN: Duration = Duration::from_millis(2);
const AFTER: Duration = Duration::from_secs(15);

fn generate(source: &mut Source) -> Vec<u8> {
    let mut frames = Vec::new();
    let session = source.pick(SESSIONS).to_string();
    let hello = wire::Hello { session, ..Default::default() };
    let paths = METHODS.iter().map(|method| format!("/{}", method.path)).collect();
    let mut first = wire::Frame { hello: Some(hello), paths, ..Default::default() };
    for _ in 0..1 + source.below(8) {
        first.ops = (0..source.below(12)).map(|_| op(source)).collect();
        let mut bytes = std::mem::take(&mut first).encode_to_vec();
        if source.one_in(12) {
            bytes = message::message(source, "tripod.v1.Frame");
        }
        if source.one_in(8) {
            mutate::mutate(source, &mut bytes);
        }
        frames.push(bytes);
    }
    pieces::join(u8::try_from(level::NEWEST.0).expect("few levels"), &frames)
}

fn op(source: &mut Source) -> wire::Op {
    let place = source.below(METHODS.len());
    let mut message = message::message(source, &METHODS[place].input);
    message.truncate(4_000);
    let path = if source.one_in(10) { source.below(3) } else { 1 + place };
    wire::Op {
        tag: u32::try_from(source.below(64)).expect("below 64"),
        path: u32::try_from(path).expect("few paths"),
        message: message.into(),
        sequence: if source.one_in(4) { source.number() } else { 0 },
        acknowledged_below: if source.one_in(4) { source.number() } else { 0 },
        patience_ms: u32::try_from(source.below(3_000)).expect("below 3,000"),
        metadata: Vec::new(),
    }
}

/// Gives how many commands were committed.
fn run(input: &[u8]) -> u64 {
    let (level, frames) = pieces::split(input);
    let frames: Vec<Bytes> = frames.into_iter().map(framed).collect();
    runtime::run(async move {
        let node = Node::start(FeatureLevel(u32::from(level).clamp(1, level::NEWEST.0))).await;
        let begin = node.backend.applied_index().0;
        let services = services(node.served());
        let sent = stream::unfold(frames.into_iter(), |mut frames| async move {
            tokio::time::sleep(BETWEEN).await;
            Some((Ok::<_, tonic::Status>(http_body::Frame::data(frames.next()?)), frames))
        });
        let heard = tokio::spawn(async move {
            let mut answers =
                open(services, &ConnectionCalls::default(), Body::new(StreamBody::new(sent))).await;
            let mut came = BytesMut::new();
            while let Some(Ok(frame)) = answers.frame().await {
                let Ok(data) = frame.into_data() else { continue };
                came.extend_from_slice(&data);
                while next_frame(&mut came).is_some() {}
            }
            assert!(came.is_empty(), "the node ends within no frame");
        });
        tokio::time::sleep(AFTER).await;
        node.check();
        if heard.is_finished() {
            heard.await.expect("what a node says is well formed");
        } else {
            heard.abort();
        }
        node.backend.applied_index().0 - begin
    })
}

fn services(served: Served) -> Followed {
    let Served::Grpc(Grpc { routes, direct, manners }) = served else { panic!("a port of gRPC") };
    Followed::new(routes, direct, manners, &Stopping::never())
}

/// The body of a stream's answer.
async fn open(services: Followed, connection: &ConnectionCalls, frames: Body) -> Body {
    let mut request =
        Request::post(format!("http://10.0.0.1:7700{CALLS_PATH}")).body(frames).expect("a path");
    request.extensions_mut().insert(connection.clone());
    let Ok(response) = services.oneshot(request).await;
    Body::new(response.into_body())
}

fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).expect("a small message"));
    frame.put_slice(message);
    frame.freeze()
}

/// Takes a frame of the node that has come whole.
fn next_frame(came: &mut BytesMut) -> Option<wire::Frame> {
    let length = u32::from_be_bytes(came.get(1..5)?.try_into().ok()?);
    let whole = 5 + usize::try_from(length).ok()?;
    (came.len() >= whole).then(|| wire::Frame::decode(&came.split_to(whole)[5..]).expect("a frame"))
}

#[cfg(test)]
mod tests {
    //! What is called by a stream is answered as the call itself is, whatever it is.

    use futures::channel::mpsc;
    use http::HeaderMap;
    use prost_types::FileDescriptorSet;
    use tonic::{Code, Status};
    use tripod_gateway::{JobBinding, PortKind};
    use tripod_state::ids::JobId;

    use super::*;

    /// Messages of each method beside the empty one.
    const MESSAGES: usize = 4;
    /// For so long each caller waits.
    const PATIENCE_MS: u32 = 2_000;
    const STREAMING_ELSEWHERE: &[&str] = &[
        "/grpc.health.v1.Health/Watch",
        "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        "/tripod.v1.Calls/Open",
    ];

    /// Their messages tell when the process started, which no two nodes have in common.
    const REAL_TIME: &[&str] = &["/mars.v1.Scheduler/GetSchedulersInfo"];

    struct Call {
        path: String,
        message: Vec<u8>,
    }

    /// Paths and inputs of all methods that have a description and no streams, and the paths of those that have.
    fn described() -> (Vec<(String, String)>, Vec<String>) {
        let files = FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).expect("descriptors").file;
        let (mut unary, mut streaming) = (Vec::new(), Vec::new());
        for file in &files {
            for service in &file.service {
                let package =
                    if file.package().is_empty() { String::new() } else { format!("{}.", file.package()) };
                for method in &service.method {
                    let path = format!("/{package}{}/{}", service.name(), method.name());
                    if method.client_streaming() || method.server_streaming() {
                        streaming.push(path);
                    } else {
                        unary.push((path, method.input_type().trim_start_matches('.').to_owned()));
                    }
                }
            }
        }
        (unary, streaming)
    }

    fn calls() -> Vec<Call> {
        let mut source = Source::new(61);
        let mut calls = vec![Call { path: "/grpc.health.v1.Health/Check".to_owned(), message: Vec::new() }];
        let (unary, _) = described();
        for round in 0..=MESSAGES {
            for (path, input) in &unary {
                let mut message = Vec::new();
                if round > 0 {
                    message = message::message(&mut source, input);
                }
                calls.push(Call { path: path.clone(), message });
            }
        }
        calls
    }

    /// What HTTP and gRPC say for themselves.
    const OWN: &[&str] =
        &["content-length", "content-type", "grpc-status", "grpc-message", "grpc-status-details-bin"];

    fn told(path: &str, status: &Status, message: &[u8], others: &HeaderMap) -> String {
        let of_call = others.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
        let mut others: Vec<_> = of_call.map(|(name, value)| format!("{name}: {value:?}")).collect();
        others.sort();
        let is_compared = status.code() == Code::Ok && !REAL_TIME.contains(&path);
        let mut message = if is_compared { message.to_vec() } else { Vec::new() };
        if path.starts_with("/mars.v1.") {
            // It has maps, whose entries come in any order.
            message.sort_unstable();
        }
        format!(
            "{path} {:?} {:?} {:?} {message:?} {others:?}",
            status.code(),
            status.message(),
            Bytes::copy_from_slice(status.details())
        )
    }

    fn served(node: &Node, port: PortKind) -> Followed {
        let binding = match port {
            PortKind::Job => JobBinding::Fixed(JobId(2)),
            _ => JobBinding::Named("default".into()),
        };
        services(node.front_ends().served(port, &binding))
    }

    /// What each call is told by itself.
    fn by_themselves(port: PortKind, calls: &[Call]) -> Vec<String> {
        runtime::run(async {
            let node = Node::start(level::NEWEST).await;
            let services = served(&node, port);
            let connection = ConnectionCalls::default();
            let mut all = Vec::new();
            for call in calls {
                let body = Body::new(http_body_util::Full::new(framed(&call.message)));
                let mut request = Request::post(format!("http://10.0.0.1:7700{}", call.path))
                    .header("content-type", "application/grpc")
                    .header("te", "trailers")
                    .header("grpc-timeout", format!("{PATIENCE_MS}m"))
                    .body(body)
                    .expect("a path");
                request.extensions_mut().insert(connection.clone());
                tokio::time::sleep(BETWEEN).await;
                let Ok(response) = services.clone().oneshot(request).await;
                let (head, body) = response.into_parts();
                let came = body.collect().await.expect("an answer");
                let mut headers = head.headers;
                headers.extend(came.trailers().cloned().unwrap_or_default());
                let status = Status::from_header_map(&headers).expect("a status");
                let message = came.to_bytes();
                all.push(told(&call.path, &status, message.get(5..).unwrap_or_default(), &headers));
            }
            all
        })
    }

    /// What each is told as an op, one after the other.
    fn by_a_stream(port: PortKind, calls: &[Call]) -> Vec<String> {
        runtime::run(async {
            let node = Node::start(level::NEWEST).await;
            let services = served(&node, port);
            let connection = ConnectionCalls::default();
            let (send, sent) = mpsc::unbounded::<Result<http_body::Frame<Bytes>, Status>>();
            let mut answers = open(services, &connection, Body::new(StreamBody::new(sent))).await;
            let mut came = BytesMut::new();
            let mut paths: Vec<&str> = Vec::new();
            let mut all = Vec::new();
            for (tag, call) in (1..).zip(calls) {
                let mut frame = wire::Frame::default();
                if tag == 1 {
                    frame.hello = Some(wire::Hello::default());
                }
                let known = paths.iter().position(|path| *path == call.path);
                let place = known.unwrap_or_else(|| {
                    paths.push(&call.path);
                    frame.paths.push(call.path.clone());
                    paths.len() - 1
                });
                frame.ops.push(wire::Op {
                    tag,
                    path: u32::try_from(place + 1).expect("few paths"),
                    message: Bytes::copy_from_slice(&call.message),
                    patience_ms: PATIENCE_MS,
                    ..Default::default()
                });
                // What runs beside calls runs in between, whichever way they go.
                tokio::time::sleep(BETWEEN).await;
                send.unbounded_send(Ok(http_body::Frame::data(framed(&frame.encode_to_vec()))))
                    .expect("it is heard");
                'answered: loop {
                    while let Some(frame) = next_frame(&mut came) {
                        if let Some(answer) = frame.answers.into_iter().find(|answer| !answer.arrived) {
                            assert_eq!(answer.tag, tag, "one after the other");
                            let mut others = HeaderMap::new();
                            for entry in &answer.metadata {
                                let name: http::HeaderName = entry.key.parse().expect("a name");
                                others.append(name, entry.value.parse().expect("a value"));
                            }
                            let code = Code::from(answer.code);
                            let status = Status::with_details(code, answer.text, answer.details);
                            all.push(told(&call.path, &status, &answer.message, &others));
                            break 'answered;
                        }
                    }
                    let frame = answers.frame().await.expect("it has not ended").expect("a frame");
                    came.extend_from_slice(
                        &frame.into_data().unwrap_or_else(|end| panic!("{}: {end:?}", call.path)),
                    );
                }
            }
            all
        })
    }

    #[test]
    fn every_call_is_told_the_same_by_a_stream_as_by_itself() {
        let calls = calls();
        for port in [PortKind::Client, PortKind::Job] {
            let (alone, streamed) = (by_themselves(port, &calls), by_a_stream(port, &calls));
            for (alone, streamed) in alone.iter().zip(&streamed) {
                assert_eq!(streamed, alone, "on the {port:?} port");
            }
            assert_eq!((alone.len(), streamed.len()), (calls.len(), calls.len()));
            let answered = alone.iter().filter(|told| told.contains(" Ok ")).count();
            assert!(answered >= 50, "only {answered} calls are answered: the others say little");
        }
    }

    #[test]
    fn no_method_with_streams_is_an_op() {
        let (_, mut streaming) = described();
        streaming.extend(STREAMING_ELSEWHERE.iter().map(|path| (*path).to_owned()));
        let calls: Vec<_> = streaming.into_iter().map(|path| Call { path, message: Vec::new() }).collect();
        for port in [PortKind::Client, PortKind::Job] {
            for told in by_a_stream(port, &calls) {
                assert!(told.contains(" Unimplemented "), "{told}");
            }
        }
    }

    #[test]
    fn a_call_that_waits_for_others_says_that_it_has_arrived() {
        runtime::run(async {
            let node = Node::start(level::NEWEST).await;
            let (send, sent) = mpsc::unbounded::<Result<http_body::Frame<Bytes>, Status>>();
            let body = Body::new(StreamBody::new(sent));
            let mut answers = open(served(&node, PortKind::Client), &ConnectionCalls::default(), body).await;
            let get = tripod_proto::tensorflow::GetKeyValueRequest { key: "later".to_owned() };
            let put = tripod_proto::tripod::v1::PutRequest { key: "later".to_owned(), ..Default::default() };
            let paths = ["/tensorflow.CoordinationService/GetKeyValue", "/tripod.v1.Kv/Put"];
            let op = |tag, message: Vec<u8>| wire::Op {
                tag,
                path: tag,
                message: message.into(),
                ..Default::default()
            };
            let first = wire::Frame {
                hello: Some(wire::Hello::default()),
                paths: paths.map(str::to_owned).to_vec(),
                ops: vec![op(1, get.encode_to_vec())],
                ..Default::default()
            };
            let second = wire::Frame { ops: vec![op(2, put.encode_to_vec())], ..Default::default() };
            let mut came = BytesMut::new();
            let mut heard = Vec::new();
            for frame in [first, second] {
                send.unbounded_send(Ok(http_body::Frame::data(framed(&frame.encode_to_vec()))))
                    .expect("it is heard");
                let until = if heard.is_empty() { 1 } else { 3 };
                while heard.len() < until {
                    let frame = answers.frame().await.expect("it has not ended").expect("a frame");
                    came.extend_from_slice(&frame.into_data().expect("a frame"));
                    while let Some(frame) = next_frame(&mut came) {
                        heard.extend(
                            frame.answers.iter().map(|answer| (answer.tag, answer.arrived, answer.code)),
                        );
                    }
                }
            }
            assert_eq!(heard.remove(0), (1, true, 0));
            heard.sort_unstable();
            assert_eq!(heard, [(1, false, 0), (2, false, 0)]);
        });
    }

    #[test]
    fn ops_come_through_to_the_state() {
        let mut source = Source::new(1);
        let committed: u64 = (0..30).map(|_| run(&generate(&mut source))).sum();
        assert!(committed >= 40, "only {committed} commands");
    }
}
