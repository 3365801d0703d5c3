//! What is called past the router is answered in the same words as by it, in every dialect.

mod support;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Body as HttpBody, Frame};
use support::frames::message;
use support::schema::Schema;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tower::Service as _;
use tripod_coordination::{Coordination, MANNERS};
use tripod_gateway::{FrontEnd as _, Gateway, JobBinding};
use tripod_port::overlong::MESSAGE_BYTES_MAX;
use tripod_port::{ConnectionCalls, Followed, Manners, Stopping};
use tripod_proto::metadata;
use tripod_state::ids::ServiceIncarnation;
use tripod_state::{Command, job};

const N: &str = "xla.coordination.CoordinationService/";
const T: &str = "tensorflow.CoordinationService/";
const L: &str = "xla.DistributedRuntimeService/";
const SHORT: &str = "50m";

/// A request's body, frame by frame.
struct Scripted {
    frames: VecDeque<Bytes>,
    has_end: bool,
}

impl HttpBody for Scripted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.frames.pop_front() {
            None if !self.has_end => Poll::Pending,
            frame => Poll::Ready(frame.map(|frame| Ok(Frame::data(frame)))),
        }
    }
}

/// A call as its client sends it.
#[derive(Debug, Clone)]
struct Call {
    host: &'static str,
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    frames: Vec<Vec<u8>>,
    has_end: bool,
}

impl Call {
    fn new(path: impl Into<String>, frames: Vec<Vec<u8>>) -> Self {
        Self { host: "10.0.0.1:7700", path: path.into(), headers: Vec::new(), frames, has_end: true }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// The services of one node, as one client calls them.
struct Port {
    services: Followed,
    connection: ConnectionCalls,
}

impl Port {
    /// With a state of its own; the dialects are called past the router if they are to be.
    async fn new(is_direct: bool) -> Self {
        let (gateway, _backend) = Gateway::in_memory();
        for name in ["job", "t", "l", "train"] {
            let spec = job::Spec { poll: job::Poll::Hold, ..job::Spec::of_tasks(1) };
            let service = ServiceIncarnation(support::SERVICE);
            let create = job::Command::Create { name: name.to_owned(), spec, service };
            gateway.submit(Command::Job(create)).await.expect("no outage").expect("not refused");
        }
        let binding = JobBinding::Named("job".to_owned());
        let dialects = Coordination::new(gateway);
        let direct = if is_direct { dialects.direct(&binding) } else { Vec::new() };
        let routes = dialects.add_to(Routes::default(), &binding);
        let services = Followed::new(routes, direct, Manners::of(&[MANNERS]), &Stopping::never());
        Self { services, connection: ConnectionCalls::default() }
    }

    /// All that the client hears.
    async fn call(&mut self, call: Call) -> String {
        let frames = call.frames.into_iter().map(Bytes::from).collect();
        let mut request = Request::post(format!("http://{}{}", call.host, call.path));
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let body = Body::new(Scripted { frames, has_end: call.has_end });
        let mut request = request.body(body).expect("a request");
        request.extensions_mut().insert(self.connection.clone());
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

fn sorted(headers: &HeaderMap) -> Vec<String> {
    let mut sorted: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    sorted.sort();
    sorted
}

/// Makes calls both ways, each by a client of its own, and gives what is heard.
async fn same(calls: &[Call]) -> Vec<String> {
    let (mut direct, mut routed) = (Port::new(true).await, Port::new(false).await);
    let mut all = Vec::new();
    for call in calls {
        let heard = direct.call(call.clone()).await;
        assert_eq!(heard, routed.call(call.clone()).await, "{call:?}");
        all.push(heard);
    }
    all
}

/// A call of these fields in the job of its dialect.
fn said(schema: &Schema, dialect: &str, method: &str, fields: &str) -> Call {
    let (input, _) = &schema.methods[&format!("{dialect}{method}")];
    let fields = fields.replace("SERVICE", "incarnations={service_incarnation=7}");
    let body = schema.encode(input, &fields);
    let length = u32::try_from(body.len()).expect("a short message");
    let call = Call::new(format!("/{dialect}{method}"), vec![message(length, &body)]);
    match dialect {
        T => call.with(metadata::JOB, "t"),
        L => call.with(metadata::JOB, "l"),
        _ => call,
    }
}

/// Calls that are made often, in the order in which a client makes them. Most of the last ones wait until their time is over.
fn often(schema: &Schema) -> Vec<Call> {
    let mut calls = Vec::new();
    for (dialect, method, fields) in [
        (N, "RegisterTask", "incarnation=17"),
        (N, "Heartbeat", "SERVICE incarnation=17"),
        (N, "Heartbeat", "SERVICE incarnation=18 source_task_id=1"),
        (N, "InsertKeyValue", "SERVICE kv={key=a value=v}"),
        (N, "InsertKeyValue", "SERVICE kv={key=a value=w}"),
        (N, "InsertKeyValue", "kv={key=b value=v}"),
        (N, "GetKeyValue", "SERVICE key=a"),
        (N, "TryGetKeyValue", "SERVICE key=/a/"),
        (N, "TryGetKeyValue", "SERVICE key=none"),
        (N, "IncrementKeyValue", "SERVICE key=count increment=2"),
        (N, "IncrementKeyValue", "SERVICE key=a increment=2"),
        (N, "Barrier", "SERVICE barrier_id=b barrier_timeout_in_ms=20000"),
        (N, "Barrier", "SERVICE barrier_id=c barrier_timeout_in_ms=20000 source_task_id=9"),
        (T, "RegisterTask", "incarnation=17 source_task={job_name=worker}"),
        (T, "Heartbeat", "incarnation=17 source_task={job_name=worker}"),
        (T, "Heartbeat", "incarnation=17 source_task={job_name=worker task_id=4}"),
        (T, "InsertKeyValue", "kv={key=a value=v}"),
        (T, "InsertKeyValue", "kv={key=a value=w}"),
        (T, "GetKeyValue", "key=a"),
        (T, "TryGetKeyValue", "key=none"),
        (T, "IncrementKeyValue", "key=count increment=2"),
        (T, "Barrier", "barrier_id=b barrier_timeout_in_ms=20000 source_task={job_name=worker}"),
        (L, "Connect", "protocol_version=3 timeout_milliseconds=20000 client_id=1"),
        (L, "Heartbeat", "session_id=7"),
        (L, "Heartbeat", "session_id=8"),
        (L, "KeyValueSet", "session_id=7 key=a value=v"),
        (L, "KeyValueGet", "session_id=7 key=a timeout_milliseconds=10"),
        (L, "KeyValueGet", "session_id=7 key=none timeout_milliseconds=10"),
        (L, "WaitAtBarrier", "session_id=7 barrier_id=b timeout_milliseconds=20000"),
    ] {
        calls.push(said(schema, dialect, method, fields));
    }
    for (dialect, method, fields) in [
        (N, "GetKeyValue", "SERVICE key=none"),
        (T, "GetKeyValue", "key=none"),
        (N, "PollForError", "SERVICE"),
        (T, "PollForError", "source_task={job_name=worker}"),
        (N, "ShutdownTask", "SERVICE"),
        (T, "ShutdownTask", "source_task={job_name=worker}"),
    ] {
        calls.push(said(schema, dialect, method, fields).with("grpc-timeout", SHORT));
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn every_call_that_is_made_often_is_answered_in_the_same_words_both_ways() {
    let heard = same(&often(&Schema::load())).await;
    let count = |word: &str| heard.iter().filter(|heard| heard.contains(word)).count();
    assert!(count(r#"grpc-status: \"0\""#) >= 16, "{heard:#?}");
    assert!(count("Deadline%20Exceeded") >= 4, "{heard:#?}");
}

#[tokio::test(start_paused = true)]
async fn every_other_method_is_answered_in_the_same_words_both_ways() {
    let schema = Schema::load();
    let methods = schema.methods.keys().filter_map(|path| {
        let dialect = [N, T, L].into_iter().find(|dialect| path.starts_with(*dialect))?;
        Some((dialect, path.strip_prefix(dialect)?))
    });
    let calls: Vec<Call> = methods
        .map(|(dialect, method)| said(&schema, dialect, method, "").with("grpc-timeout", SHORT))
        .collect();
    assert!(calls.len() >= 40, "only {} methods", calls.len());
    same(&calls).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_of_any_form_is_answered_in_the_same_words_both_ways() {
    let mut calls = Vec::new();
    for call in often(&Schema::load()) {
        let plain = call.frames[0].clone();
        let (begin, rest) = plain.split_at(3);
        let packed = [&[1][..], &plain[1..]].concat();
        let broken = message(3, b"\x12\x09a");
        let longest = u32::try_from(MESSAGE_BYTES_MAX + 1).expect("32 bits");
        let forms = [
            vec![plain.clone(), Vec::new()],
            vec![begin.to_vec(), rest.to_vec()],
            vec![plain.clone(), plain.clone()],
            vec![[plain.clone(), vec![0]].concat()],
            vec![begin.to_vec()],
            Vec::new(),
            vec![packed.clone()],
            vec![broken],
            vec![message(longest, b"x")],
        ];
        let call = call.with("grpc-timeout", SHORT);
        let formed = |frames| Call { frames, ..call.clone() };
        calls.extend(forms.map(formed));
        let encodings = [("gzip", &plain), ("gzip", &packed), ("identity", &plain), ("zstd", &plain)];
        calls.extend(
            encodings.map(|(encoding, frame)| formed(vec![frame.clone()]).with("grpc-encoding", encoding)),
        );
    }
    same(&calls).await;
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_no_method_is_answered_in_the_same_words_both_ways() {
    let overlong = format!("/{N}{}", "x".repeat(60_000));
    let paths = [
        "/xla.coordination.CoordinationService/Newer",
        "/xla.coordination.CoordinationService/barrier",
        "/xla.coordination.CoordinationService/Barrier/",
        "/xla.coordination.CoordinationService/Barrier/More",
        "/xla.coordination.CoordinationService/",
        "/xla.coordination.CoordinationService",
        "/tensorflow.CoordinationService/Newer",
        "/xla.DistributedRuntimeService/Newer",
        "/none.Service/Barrier",
        "//Barrier",
        "/",
        overlong.as_str(),
    ];
    let heard = same(&paths.map(|path| Call::new(path, vec![message(0, b"")]))).await;
    assert!(heard.iter().all(|heard| heard.contains(r#"grpc-status: \"12\""#)), "{heard:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_never_ends_is_answered_when_its_time_is_over_both_ways() {
    let schema = Schema::load();
    let mut calls = Vec::new();
    for call in often(&schema) {
        let call = Call { has_end: false, ..call.with("grpc-timeout", SHORT) };
        calls.push(Call { frames: Vec::new(), ..call.clone() });
        calls.push(call);
    }
    let heard = same(&calls).await;
    assert!(heard.iter().all(|heard| heard.contains("Deadline%20Exceeded")), "{heard:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_job_that_a_hosts_label_names_is_found_both_ways() {
    let schema = Schema::load();
    let insert = said(&schema, T, "InsertKeyValue", "kv={key=a value=v}");
    let get = said(&schema, T, "TryGetKeyValue", "key=a");
    let dialled = |call: &Call, host| Call { host, headers: Vec::new(), ..call.clone() };
    let calls = [
        dialled(&insert, "train.host:7700"),
        dialled(&get, "train.host:7700"),
        dialled(&get, "other.host:7700"),
    ];
    let heard = same(&calls).await;
    let found: Vec<bool> = heard.iter().map(|heard| heard.contains(r#"grpc-status: \"0\""#)).collect();
    assert_eq!(found, [true, true, false], "{heard:#?}");
}
