//! Frames of MindSpore's nodes: those of the parameter server, and those of dynamic clusters; and requests of operators. Frames
//! are read alone, too; all come to the port of a job whose node leads.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{FrontEnds, JobBinding};
use tripod_lines::Lines;
use tripod_mindspore::wire::{Broken, Frame, ps, rpc0};
use tripod_mindspore::{Dialling, Mindspore, PORT};
use tripod_port::Listener;
use tripod_state::level;

use crate::node::Node;
use crate::source::Source;
use crate::target::Target;
use crate::{message, mutate, pieces, runtime};

const PLACE: &str = "node:8400";
/// For longer than a node may be silent, and a frame unfinished.
const LONG: Duration = Duration::from_secs(100);

/// Nodes of the parameter server, in pieces as they come.
pub(crate) const PS: Target = Target {
    name: "mindspore-ps",
    what: "frames of nodes of MindSpore's parameter server",
    generate: |source| generate(source, ps_frame),
    run: |input| run::<ps::Frame>(input, ps::Frame::encode),
};

/// Operators of the parameter server, in pieces as they come.
pub(crate) const HTTP: Target = Target {
    name: "mindspore-http",
    what: "requests of operators of MindSpore's parameter server",
    generate: |source| generate(source, request),
    run: |input| runtime::run(converse(&pieces::split(input).1)),
};

/// Workers of dynamic clusters, in pieces as they come.
pub(crate) const TOPOLOGY: Target = Target {
    name: "mindspore-topology",
    what: "frames of workers of MindSpore's dynamic clusters",
    generate: |source| generate(source, rpc0_frame),
    run: |input| run::<rpc0::Frame>(input, rpc0::Frame::encode),
};

/// What is said with each command.
const PS_PAYLOADS: &[(u8, &str)] = &[
    (1, "RegisterMessage"),
    (1, "RegisterMessage"),
    (2, "HeartbeatMessage"),
    (4, "FetchServersMessage"),
    (5, "FinishMessage"),
    (7, "SendMetadataMessage"),
    (8, "ScaleOutMessage"),
    (9, "ScaleInMessage"),
    (10, "ScaleOutDoneMessage"),
    (11, "ScaleInDoneMessage"),
    (12, "EventMessage"),
    (15, "EventMessage"),
];

const PATHS: &[&str] = &[
    "/scaleout",
    "/scalein",
    "/scaleoutRollback",
    "/nodes",
    "/state",
    "/newInstance",
    "/enableFLS",
    "/disableFLS",
    "/queryInstance",
    "/",
    "/nodes?x=%zz",
];
const REQUESTS: &[&str] = &[
    "",
    "{}",
    r#"{"worker_num": 0, "server_num": 1}"#,
    r#"{"worker_num": -1, "server_num": 4294967295}"#,
    r#"{"node_ids": ["a", "b"]}"#,
    r#"{"node_ids": []}"#,
    "[[[[1e999]]]]",
];

/// What is asked by each number.
const BODIES: &[(&str, &str)] = &[
    ("0", "RegistrationMessage"),
    ("1", "UnregistrationMessage"),
    ("2", "HeartbeatMessage"),
    ("6", "MetadataMessage"),
    ("7", "MetadataMessage"),
    ("8", "MetadataMessage"),
    ("3", "HeartbeatMessage"),
    ("a_user's", "MetadataMessage"),
];

/// Pieces in which frames come: one in each, or a part of one.
fn generate(source: &mut Source, frame: fn(&mut Source) -> Vec<u8>) -> Vec<u8> {
    let mut parts = Vec::new();
    for _ in 0..1 + source.below(10) {
        let mut bytes = frame(source);
        if source.one_in(6) {
            mutate::mutate(source, &mut bytes);
        }
        if source.one_in(3) {
            let rest = bytes.split_off(source.below(bytes.len() + 1));
            parts.push(std::mem::replace(&mut bytes, rest));
        }
        parts.push(bytes);
    }
    pieces::join(0, &parts)
}

pub(super) fn ps_frame(source: &mut Source) -> Vec<u8> {
    let (command, name) = source.pick(PS_PAYLOADS);
    let meta = if source.one_in(3) {
        message::message(source, "mindspore.ps.core.MessageMeta")
    } else {
        // The command, and the number of the request.
        vec![8, *command, 16, u8::try_from(source.below(128)).expect("small")]
    };
    let payload = message::message(source, &format!("mindspore.ps.core.{name}"));
    let format = u32::try_from(source.below(3)).expect("small");
    let (length, all) = (meta.len(), (meta.len() + payload.len()) as u64);
    let length = u32::try_from(length).expect("small");
    [&format.to_le_bytes()[..], &length.to_le_bytes(), &all.to_le_bytes(), &meta, &payload].concat()
}

fn request(source: &mut Source) -> Vec<u8> {
    let (method, path) = (source.pick(&["GET", "POST", "PUT", "PATCH"]), source.pick(PATHS));
    let body = source.pick(REQUESTS);
    let length = if source.one_in(6) { source.below(1 << 21) } else { body.len() };
    format!("{method} {path} HTTP/1.1\r\nhost: node\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

pub(super) fn rpc0_frame(source: &mut Source) -> Vec<u8> {
    let body = if source.one_in(8) {
        ("9", source.pick(&["MS_WORKER", "MS_PSERVER", ""]).as_bytes().to_vec())
    } else {
        let (name, body) = source.pick(BODIES);
        (*name, message::message(source, &format!("mindspore.distributed.cluster.topology.{body}")))
    };
    let (name, body) = (body.0.as_bytes(), body.1);
    let part = |text: &[u8]| Bytes::copy_from_slice(text);
    let frame =
        rpc0::Frame { name: part(name), to: part(b"@10.0.0.1:8118"), from: part(b"@"), body: body.into() };
    frame.encode().into()
}

fn run<F: Frame + PartialEq + Debug>(input: &[u8], encode: fn(&F) -> Bytes) {
    let (_, parts) = pieces::split(input);
    let came = read::<F>(&parts);
    assert_eq!(came, read(&[&parts.concat()]), "what is read does not depend on how it comes");
    for frame in came.0 {
        let again = read(&[&encode(&frame)]);
        assert_eq!(again, (vec![frame], None), "what is written is read as it was");
    }
    runtime::run(converse(&parts));
}

/// Says it to a node, over two connections by turns whenever a piece is empty.
async fn converse(parts: &[&[u8]]) {
    let node = Node::start(level::NEWEST).await;
    let front_ends = FrontEnds::of(vec![Box::new(mindspore(&node))]);
    let served = front_ends.served(PORT, &JobBinding::Named("default".into()));
    let lines = Lines::new();
    let listener = Listener::within(lines.listen(PLACE));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        drop(tripod_port::serve(listener, served, std::future::pending()).await);
    });
    for (_name, background) in front_ends.background() {
        tasks.spawn(background);
    }
    let mut writers = Vec::new();
    for _ in 0..2 {
        let (mut reader, writer) = tokio::io::split(lines.dial(PLACE).expect("it listens"));
        tasks.spawn(async move {
            drop(tokio::io::copy(&mut reader, &mut tokio::io::sink()).await);
        });
        writers.push(writer);
    }
    for part in parts {
        if part.is_empty() {
            writers.swap(0, 1);
        }
        // A connection that the node has ended takes nothing.
        drop(writers[0].write_all(part).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(LONG).await;
    node.check();
    tasks.shutdown().await;
}

/// Whom the input names nobody connects to.
fn mindspore(node: &Node) -> Mindspore {
    let dialler = Dialler::new(Rule::any());
    let nowhere =
        |_: String| -> Dialling { Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) }) };
    Mindspore::new(&node.gateway, &dialler).dialling(Arc::new(nowhere))
}

/// All frames of a connection, and what broke it.
fn read<F: Frame>(parts: &[&[u8]]) -> (Vec<F>, Option<Broken>) {
    let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            match F::take(&mut buffer) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(broken) => return (frames, Some(broken)),
            }
        }
        assert!(
            F::bytes_of(&buffer).is_ok_and(|bytes| bytes > buffer.len()),
            "it is known for how many bytes it waits"
        );
    }
    (frames, None)
}
