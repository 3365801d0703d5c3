//! What came with level 10 beside schedulers: sessions, graphs of chunks, and mutable tensors.

use std::collections::BTreeMap;

use bytes::Bytes;
use tripod_state::ids::{DurationMs, JobId};
use tripod_state::mars::{
    Answer, Chunk, Column, Command as Mars, Decision, Definition, Digest, Graph, GraphKind, GraphName,
    GraphNo, GraphState, Input, MutableNo, Name, Options, Part, Place, Request, Scalar, Tileable,
    TileableKind,
};
use tripod_state::ray::Needs;
use tripod_state::{Command, Envelope, Scope};

use super::commands::Sample;
use super::state::Log;

const SCOPE: Scope = Scope { job: JobId(300), service: None };
const DRAFT: GraphNo = GraphNo(70_000);
const MUTABLE: MutableNo = MutableNo(70_001);

fn session() -> String {
    "analysis".to_owned()
}

fn graph(kind: GraphKind) -> GraphName {
    GraphName { session: session(), kind, key: "g".to_owned() }
}

fn digest() -> Digest {
    Digest([7; 32])
}

fn options() -> Options {
    Options {
        priority: -300,
        max_reschedules: Some(300),
        timeout_ms: Some(DurationMs(70_000)),
        result_ttl_ms: Some(DurationMs(80_000)),
        fuse: true,
    }
}

fn content() -> Graph {
    let named_milli = BTreeMap::from([("gpu".to_owned(), 1_000)]);
    let needs = Needs { priority: 0, cpus_milli: 1_500, memory_bytes: 1 << 40, named_milli };
    let made = Chunk {
        key: "a:0.1".to_owned(),
        argument: Bytes::from_static(b"argument"),
        inputs: vec![Input::Chunk(Place(300)), Input::Session("old:0".to_owned())],
        index: vec![0, 300],
        shape: vec![-1, 70_000],
        element_type: 5,
        needs,
        is_retryable: true,
    };
    let (key, name) = ("a".to_owned(), "weights".to_owned());
    let chunks = vec![Input::Chunk(Place(0))];
    let column = Column { name: "c".to_owned(), element_type: 6 };
    let tensor = Tileable {
        key,
        kind: TileableKind::Tensor,
        name,
        element_type: 5,
        columns: Vec::new(),
        nsplits: vec![vec![-1], vec![70_000]],
        chunks,
    };
    let frame = Tileable {
        key: "f".to_owned(),
        kind: TileableKind::Frame,
        element_type: 0,
        columns: vec![column],
        ..tensor.clone()
    };
    Graph { chunks: vec![made, Chunk::default()], tileables: vec![tensor, frame] }
}

fn definition() -> Definition {
    Definition {
        kind: TileableKind::Frame,
        element_type: 0,
        columns: vec![Column { name: "c".to_owned(), element_type: 6 }],
        defaults: vec![
            Scalar::Boolean(true),
            Scalar::Integer(-300),
            Scalar::Fraction(0.5_f64.to_bits()),
            Scalar::Text("none".to_owned()),
        ],
        nsplits: vec![vec![300, 70_000]],
        replicas: 2,
    }
}

/// Every kind of command, and every choice within one.
pub(crate) fn commands() -> Vec<Sample> {
    let ask = |(name, request)| (name, Mars::Ask { scope: SCOPE, request_id: "r-1".to_owned(), request });
    let lead = |(name, decision)| (name, Mars::Lead { scope: SCOPE, decision });
    let all = graphs().into_iter().chain(others()).map(ask).chain(decisions().into_iter().map(lead));
    all.map(|(name, command)| (name, Envelope { stamp: None, command: Command::Mars(command) })).collect()
}

fn graphs() -> Vec<(&'static str, Request)> {
    use GraphKind::{Chunk as OfChunks, Tileable as OfTileables};
    let targets = || vec!["a".to_owned()];
    let part = Part { chunks_before: 300, tileables_before: 70_000, content: content() };
    let bytes = Bytes::from_static(b"bytes");
    vec![
        ("mars/upload", Request::Upload { graph: graph(OfTileables), offset: 1 << 30, bytes, is_last: true }),
        (
            "mars/submit",
            Request::Submit {
                graph: graph(OfChunks),
                digest: digest(),
                options: options(),
                targets: targets(),
                content: content(),
            },
        ),
        (
            "mars/begin",
            Request::Begin {
                graph: graph(OfTileables),
                digest: digest(),
                options: Options::default(),
                targets: targets(),
            },
        ),
        ("mars/add", Request::Add { graph: graph(OfTileables), draft: DRAFT, part }),
        ("mars/commit", Request::Commit { graph: graph(OfTileables), draft: DRAFT }),
        ("mars/stop", Request::Stop { graph: graph(OfChunks) }),
        ("mars/delete-graph", Request::DeleteGraph { graph: graph(OfChunks) }),
        ("mars/decref", Request::Decref { session: session(), keys: targets(), counts: vec![70_000] }),
    ]
}

fn others() -> Vec<(&'static str, Request)> {
    let name = || "grid".to_owned();
    let labels = vec![("team".to_owned(), "blue".to_owned())];
    let (store, chunks) = ("10.0.0.5:7750".to_owned(), vec![0, 300, 70_000]);
    vec![
        (
            "mars/create-session",
            Request::CreateSession { session: session(), is_proposed: true, if_not_exist: false, labels },
        ),
        ("mars/delete-session", Request::DeleteSession { session: session(), if_exist: true }),
        (
            "mars/create-mutable",
            Request::CreateMutable {
                session: session(),
                name: name(),
                is_proposed: false,
                definition: definition(),
                if_not_exist: true,
            },
        ),
        (
            "mars/seal-mutable",
            Request::SealMutable { session: session(), name: name(), timestamp_ns: Some(-70_000) },
        ),
        ("mars/delete-mutable", Request::DeleteMutable { session: session(), name: name(), if_exist: false }),
        (
            "mars/seal-reported",
            Request::SealReported { mutable: MUTABLE, epoch: 300, store, chunks, failed: true },
        ),
    ]
}

fn decisions() -> Vec<(&'static str, Decision)> {
    let (session, kind, key) = (session(), GraphKind::Tileable, "g".to_owned());
    vec![
        ("mars/advance", Decision::Advance { graph: DRAFT }),
        ("mars/timed-out", Decision::TimedOut { graph: DRAFT }),
        ("mars/expired", Decision::Expired { graph: DRAFT }),
        ("mars/upload-expired", Decision::UploadExpired { session, kind, key }),
        ("mars/forget", Decision::Forget),
        ("mars/judge", Decision::Judge { mutable: MUTABLE }),
    ]
}

/// Every answer, and every state of a graph in one.
pub(super) fn answers() -> Vec<(&'static str, Answer)> {
    use GraphState::{Cancelled, Cancelling, Failed, Preparing, Running, Succeeded, Unscheduled};
    let name = || Name::from("grid");
    let mut answers = vec![
        ("done", Answer::Done),
        ("session", Answer::Session { session: name(), created: true }),
        ("deleted", Answer::Deleted { deleted: true }),
        ("uploaded", Answer::Uploaded { bytes: 1 << 30, complete: true }),
        ("graph", Answer::Graph { graph: DRAFT, state: Preparing, created: true, chunks: 70_000 }),
        ("freed", Answer::Freed { chunks: 70_000 }),
        ("mutable", Answer::Mutable { mutable: MUTABLE, name: name(), created: true }),
        ("sealing", Answer::Sealing { mutable: MUTABLE, epoch: 300, tileable: name() }),
    ];
    let states = [Unscheduled, Preparing, Running, Succeeded, Failed, Cancelling, Cancelled];
    answers.extend(states.map(|state| ("stopped", Answer::Stopped { state })));
    answers
}

/// Sessions with graphs and mutables in a job that has a scheduler.
pub(super) fn fill(log: &mut Log, scope: Scope) {
    let mut ask = |request| {
        let command = Mars::Ask { scope, request_id: String::new(), request };
        log.reply_to(Command::Mars(command)).unwrap_or_else(|fault| panic!("{fault:?}"));
    };
    let labels = vec![("team".to_owned(), "blue".to_owned())];
    ask(Request::CreateSession { session: session(), is_proposed: false, if_not_exist: false, labels });
    let chunk = |key: &str, inputs| Chunk {
        key: key.to_owned(),
        argument: Bytes::from_static(b"argument"),
        inputs,
        shape: vec![2],
        element_type: 5,
        ..Chunk::default()
    };
    let chunks = vec![chunk("a:0", Vec::new()), chunk("b:0", vec![Input::Chunk(Place(0))])];
    let tileable = Tileable {
        key: "b".to_owned(),
        kind: TileableKind::Tensor,
        name: "weights".to_owned(),
        element_type: 5,
        columns: Vec::new(),
        nsplits: vec![vec![2]],
        chunks: vec![Input::Chunk(Place(1))],
    };
    let content = Graph { chunks, tileables: vec![tileable] };
    let (digest, options, targets) = (digest(), Options::default(), Vec::new());
    ask(Request::Submit { graph: graph(GraphKind::Tileable), digest, options, targets, content });
    let bytes = Bytes::from_static(b"a part");
    let key = "h".to_owned();
    let uploaded = GraphName { key, ..graph(GraphKind::Tileable) };
    ask(Request::Upload { graph: uploaded, offset: 0, bytes, is_last: false });
}
