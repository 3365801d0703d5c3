//! A node-local agent between clients and nodes that say anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Response};
use axum::middleware::{Next, from_fn};
use bytes::Bytes;
use tonic::client::Grpc;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tripod_agent::{Agent, AgentConfig, ConnectionLimits, Listen, MemoryLimits, Poll, Timing};
use tripod_lines::Lines;
use tripod_port::{Listener, Served};
use tripod_proto::raw::RawCodec;
use tripod_state::level;

use crate::node::{self, Node};
use crate::source::Source;
use crate::target::Target;
use crate::{message, mutate, pieces, runtime};

/// Pieces by turns: a call of a client, and what the node answers; an empty answer is the node's own.
pub(crate) const CALLS: Target =
    Target { name: "agent", what: "calls of an agent's clients, and answers of its nodes", generate, run };

const AGENT: &str = "agent:1";
const NODE: &str = "node:1";
/// As long as a call is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

const SERVICES: &[&str] = &[
    "xla.coordination.CoordinationService",
    "tensorflow.CoordinationService",
    "xla.DistributedRuntimeService",
];

/// Headers and trailers of a node, and metadata of a client.
const FIELDS: &[(&str, &str)] = &[
    ("grpc-status", "0"),
    ("grpc-status", "14"),
    ("grpc-status", "1"),
    ("grpc-status", "x"),
    ("grpc-status", "99999999999"),
    ("grpc-message", "%zz%"),
    ("x-tripod-outage", "no-leader"),
    ("x-tripod-outage", "session"),
    ("x-tripod-outage", "unknown"),
    ("x-tripod-outage", ""),
    ("grpc-encoding", "gzip"),
    ("grpc-timeout", "1S"),
    ("grpc-timeout", "99999999H"),
    ("grpc-timeout", "0n"),
    ("grpc-previous-rpc-attempts", "3"),
    ("content-type", "text/html"),
    ("grpc-retry-pushback-ms", "-1"),
    ("x-tripod-stamp", "1.1.1"),
];

fn generate(source: &mut Source) -> Vec<u8> {
    let methods = message::methods(SERVICES);
    let mut parts = Vec::new();
    for _ in 0..1 + source.below(10) {
        let method = source.below(methods.len());
        let mut asked = message::message(source, &methods[method].input);
        asked.truncate(8_000);
        asked.insert(0, field(source));
        asked.insert(0, u8::try_from(method).expect("few methods"));
        parts.push(asked);
        if source.one_in(2) {
            parts.push(Vec::new());
        } else {
            let mut answered = vec![field(source), field(source)];
            let content = source.bytes(20);
            answered.push(u8::try_from(source.below(3)).expect("small"));
            answered.extend_from_slice(&u32::try_from(content.len()).expect("small").to_be_bytes());
            answered.extend(content);
            if source.one_in(4) {
                mutate::mutate(source, &mut answered);
            }
            parts.push(answered);
        }
    }
    pieces::join(0, &parts)
}

fn field(source: &mut Source) -> u8 {
    u8::try_from(source.below(FIELDS.len() + 1)).expect("few fields")
}

type Answers = Arc<Mutex<VecDeque<Vec<u8>>>>;

fn run(input: &[u8]) {
    let (_, parts) = pieces::split(input);
    runtime::run(async {
        let lines = Lines::new();
        let node = Node::start(level::NEWEST).await;
        let answers = Answers::default();
        let served = {
            let answers = Arc::clone(&answers);
            let router = node.routes().into_axum_router();
            router.layer(from_fn(move |request, next| answer(Arc::clone(&answers), request, next)))
        };
        let arrivals = Listener::within(lines.listen(NODE));
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let served =
                tripod_port::Grpc { routes: served.into(), direct: Vec::new(), manners: node::manners() };
            drop(tripod_port::serve(arrivals, Served::Grpc(served), std::future::pending()).await);
        });
        let config = AgentConfig {
            listen: vec![Listen::Tcp(AGENT.into())],
            mindspore: None,
            allow_remote: true,
            socket_uids: Vec::new(),
            cluster: vec![NODE.into()],
            job: "default".into(),
            spec: None,
            poll: Poll::Hold,
            // Little, so that what is refused for want of room is tried, too.
            memory: MemoryLimits::of(1 << 20),
            connections: ConnectionLimits::none(),
            timing: Timing { max_outage: Duration::from_secs(10), ..Timing::default() },
        };
        let arrivals = Listener::within(lines.listen(AGENT));
        let dial = lines.clone();
        let agent = Agent::within(config, arrivals, Arc::new(move |place: &str| dial.dial(place)));
        let agent = agent.expect("a configuration");
        let running = tokio::spawn(agent.run(std::future::pending()));
        let channel = lines.channel(AGENT).await;
        let methods = message::methods(SERVICES);
        for part in parts.chunks(2) {
            let &[called, answered] = part else { break };
            if !answered.is_empty() {
                answers.lock().expect("nobody panics with it").push_back(answered.to_vec());
            }
            let Some((&[method, field], message)) = called.split_first_chunk() else { continue };
            let method = &methods[usize::from(method) % methods.len()];
            let path = format!("/{}", method.path).parse().expect("a path");
            let mut request = tonic::Request::new(Bytes::copy_from_slice(message));
            if let Some((key, value)) = FIELDS.get(usize::from(field)) {
                let key = AsciiMetadataKey::from_static(key);
                request.metadata_mut().insert(key, AsciiMetadataValue::from_static(value));
            }
            let mut grpc = Grpc::new(channel.clone());
            tasks.spawn(async move {
                if grpc.ready().await.is_ok() {
                    drop(tokio::time::timeout(PATIENCE, grpc.unary(request, path, RawCodec)).await);
                }
            });
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(2 * PATIENCE).await;
        assert!(!running.is_finished(), "the agent ended");
        running.abort();
        node.check();
        tasks.shutdown().await;
    });
}

/// The next answer that the input has, if it is a client's call that is answered.
async fn answer(answers: Answers, request: Request, next: Next) -> Response<Body> {
    let is_passed_on = SERVICES.iter().any(|service| request.uri().path().contains(service));
    let scripted = is_passed_on.then(|| answers.lock().expect("nobody panics with it").pop_front()).flatten();
    let Some(scripted) = scripted else { return next.run(request).await };
    let (fields, body) = scripted.split_at(scripted.len().min(2));
    let mut response = Response::new(Body::from(body.to_vec()));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    for field in fields {
        if let Some((key, value)) = FIELDS.get(usize::from(*field)) {
            response.headers_mut().insert(HeaderName::from_static(key), HeaderValue::from_static(value));
        }
    }
    response
}
