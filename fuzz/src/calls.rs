//! Calls to a node in memory, one after the other, as they stand in an input:
//!
//! ```text
//! level u8
//! call*: method u8, two metadata entries u8 each, length u16 LE, message
//! ```
//!
//! Any bytes are such an input. Nobody waits for an answer before the next call comes, so barriers and gets are held beside each
//! other; messages of one streaming call stand behind each other. At the end simulated time passes, in which deadlines do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, StreamBody};
use tokio::task::JoinSet;
use tonic::body::Body;
use tower::ServiceExt as _;
use tripod_gateway::Replica as _;
use tripod_state::ids::FeatureLevel;
use tripod_state::level;

use crate::message::{self, Method};
use crate::node::Node;
use crate::source::Source;
use crate::{mutate, runtime};

/// Calls of one input at most.
const CALLS_MAX: usize = 64;
/// Simulated time after a call, and after the last one: heartbeats and barriers of the node's jobs end in the latter.
const BETWEEN: Duration = Duration::from_millis(2);
const AFTER: Duration = Duration::from_secs(15);
/// Messages that are taken of an answer: streams have no end.
const FRAMES_MAX: usize = 16;

/// What calls say beside their messages, legal and not.
const COMMON: &[(&str, &str)] = &[
    ("x-tripod-job", "other"),
    ("x-tripod-job", "default"),
    ("x-tripod-job", "nobody"),
    ("x-tripod-stamp", "4242.1.0"),
    ("x-tripod-stamp", "4242.2.1"),
    ("x-tripod-stamp", "4242.3.18446744073709551615"),
    ("x-tripod-stamp", "4242.18446744073709551615.1"),
    ("x-tripod-stamp", "340282366920938463463374607431768211455.1.1"),
    ("x-tripod-stamp", "1.1"),
    ("x-tripod-lasting", "1"),
    ("grpc-previous-rpc-attempts", "1"),
    ("grpc-previous-rpc-attempts", "4"),
    ("grpc-previous-rpc-attempts", "99999999999999999999"),
    ("grpc-timeout", "1m"),
    ("grpc-timeout", "99999999H"),
    ("grpc-timeout", "0n"),
    ("grpc-timeout", "-1S"),
    ("grpc-encoding", "gzip"),
    ("grpc-encoding", "zstd"),
];
/// What calls to a scheduler say.
const RAY: &[(&str, &str)] = &[
    ("x-tripod-session", "00000000000000000000000000000007"),
    ("x-tripod-session", "ffffffffffffffffffffffffffffffff"),
    ("x-tripod-session", "short"),
    ("x-tripod-seq", "1"),
    ("x-tripod-seq", "2"),
    ("x-tripod-seq", "3"),
    ("x-tripod-seq", "18446744073709551615"),
    ("x-tripod-acked", "1"),
    ("x-tripod-acked", "18446744073709551615"),
    ("x-tripod-worker", "0"),
    ("x-tripod-worker", "1"),
    ("x-tripod-worker", "18446744073709551615"),
    ("x-tripod-op", "1"),
    ("x-tripod-attempt", "1"),
    ("x-tripod-child", "0"),
    ("x-tripod-child", "18446744073709551615"),
    ("x-tripod-max-retries", "-1"),
    ("x-tripod-max-retries", "4294967295"),
    ("x-tripod-retry-exceptions", "1"),
    ("x-tripod-slots", "4294967295"),
    ("x-tripod-slots", "0"),
    ("x-tripod-extended", "1"),
    ("x-tripod-read", "stale"),
    ("x-tripod-read", "linearizable"),
];

/// One call of an input.
struct Call<'a> {
    method: usize,
    metadata: [u8; 2],
    message: &'a [u8],
}

/// Calls of those methods, with messages that are nearly right.
pub(crate) fn generate(source: &mut Source, methods: &[Method]) -> Vec<u8> {
    generate_with(source, methods, |source, method| message::message(source, &method.input))
}

/// The same with messages that somebody else makes.
pub(crate) fn generate_with(
    source: &mut Source,
    methods: &[Method],
    message: impl Fn(&mut Source, &Method) -> Vec<u8>,
) -> Vec<u8> {
    let newest = u8::try_from(level::NEWEST.0).expect("few levels");
    let mut input =
        vec![if source.one_in(4) { u8::try_from(source.below(8)).expect("below 8") } else { newest }];
    for _ in 0..1 + source.below(24) {
        let method = source.below(methods.len());
        let mut message = message(source, &methods[method]);
        if source.one_in(6) {
            mutate::mutate(source, &mut message);
        }
        message.truncate(usize::from(u16::MAX));
        input.push(u8::try_from(method).expect("few methods"));
        let begins_line = methods[method].streams && source.one_in(2);
        for entry in [begins_line.then_some(1 + COMMON.len()), None] {
            let entry = entry.unwrap_or_else(|| drawn_entry(source, &methods[method]));
            input.push(u8::try_from(entry).expect("few entries"));
        }
        let length = u16::try_from(message.len()).expect("it was cut");
        input.extend_from_slice(&length.to_le_bytes());
        input.extend_from_slice(&message);
    }
    if source.one_in(8) {
        mutate::mutate(source, &mut input);
    }
    input
}

/// The place of metadata that the service knows, or of any, from 1; 0 is none.
fn drawn_entry(source: &mut Source, method: &Method) -> usize {
    if !source.one_in(3) {
        return 0;
    }
    let is_ray =
        ["Scheduler/", "ObjStore/", "tripod.v1.Ray"].iter().any(|begin| method.path.starts_with(begin));
    match (source.one_in(8), is_ray) {
        (true, _) => 1 + source.below(COMMON.len() + RAY.len()),
        (false, true) => 1 + COMMON.len() + source.below(RAY.len()),
        (false, false) => 1 + source.below(COMMON.len()),
    }
}

fn parse<'a>(methods: &[Method], input: &'a [u8]) -> (FeatureLevel, Vec<Call<'a>>) {
    let Some((&level, mut rest)) = input.split_first() else { return (level::FIRST, Vec::new()) };
    let mut calls = Vec::new();
    while let Some((&[method, first, second, low, high], behind)) = rest.split_first_chunk() {
        let length = behind.len().min(usize::from(u16::from_le_bytes([low, high])));
        let (message, behind) = behind.split_at(length);
        rest = behind;
        calls.push(Call { method: usize::from(method) % methods.len(), metadata: [first, second], message });
        if calls.len() == CALLS_MAX {
            break;
        }
    }
    // A level that this build does not support is never in force.
    (FeatureLevel(u32::from(level).clamp(1, level::NEWEST.0)), calls)
}

/// What came of the calls of an input.
#[derive(Debug, Default, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "a test looks whether calls come through"))]
pub(crate) struct Came {
    /// Commands that were committed.
    pub(crate) committed: u64,
    /// Calls that were answered with something else than a refusal.
    pub(crate) answered: u64,
}

/// Makes the calls.
///
/// # Panics
/// Something that must hold does not.
pub(crate) fn run(methods: &[Method], input: &[u8]) -> Came {
    let (level, calls) = parse(methods, input);
    runtime::run(async {
        let node = Node::start(level).await;
        let begin = node.backend.applied_index().0;
        let answered = Arc::new(AtomicU64::new(0));
        let routes = node.routes().into_axum_router();
        let mut under_way = JoinSet::new();
        let mut calls = calls.into_iter().peekable();
        while let Some(call) = calls.next() {
            let method = &methods[call.method];
            let mut frames = vec![frame(&call)];
            while method.streams
                && let Some(next) = calls.next_if(|next| next.method == call.method)
            {
                frames.push(frame(&next));
            }
            let request = request(method, &call, frames);
            let (service, answered) = (routes.clone(), Arc::clone(&answered));
            under_way.spawn(async move {
                let Ok(response) = service.oneshot(request).await;
                let mut body = response.into_body();
                for _ in 0..FRAMES_MAX {
                    match body.frame().await {
                        Some(Ok(frame)) => answered.fetch_add(frame.is_data().into(), Ordering::SeqCst),
                        _ => return,
                    };
                }
            });
            tokio::time::sleep(BETWEEN).await;
        }
        tokio::time::sleep(AFTER).await;
        node.check();
        under_way.shutdown().await;
        let committed = node.backend.applied_index().0 - begin;
        Came { committed, answered: answered.load(Ordering::SeqCst) }
    })
}

fn frame(call: &Call<'_>) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + call.message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(call.message.len()).expect("two bytes of length"));
    frame.put_slice(call.message);
    frame.freeze()
}

fn request(method: &Method, call: &Call<'_>, frames: Vec<Bytes>) -> Request<Body> {
    let frames = frames.into_iter().map(|frame| Ok::<_, tonic::Status>(http_body::Frame::data(frame)));
    let body = Body::new(StreamBody::new(stream::iter(frames)));
    let mut request = Request::post(format!("http://10.0.0.1:7700/{}", method.path))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .expect("a path");
    for entry in call.metadata {
        let known = COMMON.iter().chain(RAY).nth(usize::from(entry).wrapping_sub(1));
        if let Some((key, value)) = known {
            request.headers_mut().insert(*key, HeaderValue::from_static(value));
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a word that changes its meaning leaves a target that tries only how calls are refused.
    #[test]
    fn calls_come_through_to_the_state_and_are_answered() {
        // Those of the oldest dialect wait until all of a job's tasks have called, which few inputs bring about.
        for (services, answered_min) in [
            (&["xla.coordination.CoordinationService"][..], 20),
            (&["tensorflow.CoordinationService"], 20),
            (&["xla.DistributedRuntimeService"], 0),
            (&["tripod.v1.Jobs", "tripod.v1.Kv", "tripod.v1.Sessions"], 20),
            (&["Scheduler"], 20),
            (&["tripod.v1.Ray", "tripod.v1.RayLine"], 20),
        ] {
            let methods = message::methods(services);
            let mut source = Source::new(1);
            let mut all = Came::default();
            for _ in 0..30 {
                let came = run(&methods, &generate(&mut source, &methods));
                all.committed += came.committed;
                all.answered += came.answered;
            }
            assert!(all.committed >= 40 && all.answered >= answered_min, "{services:?}: {all:?}");
        }
    }
}
