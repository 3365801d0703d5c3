//! HTTP/2 as a client of a node's port speaks it: what is mended and counted between the socket and h2.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tripod_port::Listener;
use tripod_state::level;

use crate::node::Node;
use crate::source::Source;
use crate::target::Target;
use crate::{message, mutate, pieces, runtime};

/// What a client sends, piece by piece.
pub(crate) const HTTP2: Target =
    Target { name: "http2", what: "frames of HTTP/2, and authorities that need mending", generate, run };

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What `:authority` says.
const AUTHORITIES: &[&str] =
    &["10.0.0.1:7700", "a:1,b:1", "d%2Fs", "", "a b", "[::1]:1,[::2]:2", "train.host:1", "%", "@"];
/// Values of settings, and of other numbers in frames.
const FAR: Duration = Duration::from_secs(20);

fn generate(source: &mut Source) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    frame(source, 4, 0, &[], &mut bytes);
    let mut stream = 1;
    for _ in 0..1 + source.below(6) {
        match source.below(8) {
            0..=3 => {
                call(source, stream, &mut bytes);
                stream += 2;
            }
            4 => {
                let content = source.bytes(12);
                let kind = u8::try_from(source.below(11)).expect("few kinds");
                frame(source, kind, stream, &content, &mut bytes);
            }
            5 => {
                let settings = [0, u8::try_from(source.below(8)).expect("few")].to_vec();
                let value = source.number().to_be_bytes()[4..].to_vec();
                frame(source, 4, 0, &[settings, value].concat(), &mut bytes);
            }
            6 => {
                let increment = source.number().to_be_bytes()[4..].to_vec();
                frame(source, 8, 0, &increment, &mut bytes);
            }
            _ => frame(source, 6, 0, &[7; 8], &mut bytes),
        }
    }
    if source.one_in(2) {
        mutate::mutate(source, &mut bytes);
    }
    let mut cut = Vec::new();
    while !bytes.is_empty() {
        let many = 1 + source.below(400).min(bytes.len() - 1);
        cut.push(bytes.drain(..many).collect());
    }
    pieces::join(0, &cut)
}

fn frame(source: &mut Source, kind: u8, stream: u32, content: &[u8], out: &mut Vec<u8>) {
    let flags = if source.one_in(4) { u8::try_from(source.below(256)).expect("a byte") } else { 0 };
    put(kind, flags, stream, content, out);
}

fn put(kind: u8, flags: u8, stream: u32, content: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(content.len()).expect("small").to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(content);
}

/// A call: headers, perhaps in several frames, and a message.
fn call(source: &mut Source, stream: u32, out: &mut Vec<u8>) {
    let authority = *source.pick(AUTHORITIES);
    let mut block = vec![0x83, 0x86];
    literal(source, ":path", "/xla.coordination.CoordinationService/RegisterTask", &mut block);
    literal(source, ":authority", authority, &mut block);
    literal(source, "content-type", "application/grpc", &mut block);
    literal(source, "te", "trailers", &mut block);
    if source.one_in(3) {
        let value = source.text();
        literal(source, "x-tripod-job", &value, &mut block);
    }
    if source.one_in(6) {
        mutate::mutate(source, &mut block);
    }
    let parts = if source.one_in(4) { 1 + source.below(6) } else { 1 };
    let each = block.len().div_ceil(parts).max(1);
    let chunks: Vec<&[u8]> = block.chunks(each).collect();
    for (place, chunk) in chunks.iter().enumerate() {
        let end = if place + 1 == chunks.len() { 4 } else { 0 };
        put(if place == 0 { 1 } else { 9 }, end, stream, &chunk[..chunk.len().min(16_000)], out);
    }
    let message = message::message(source, "xla.coordination.RegisterTaskRequest");
    let length = u32::try_from(message.len()).expect("small").to_be_bytes();
    let content = [&[0][..], &length, &message].concat();
    put(0, 1, stream, &content[..content.len().min(16_000)], out);
}

/// A header, as it is or with its place in the table.
fn literal(source: &mut Source, name: &str, value: &str, block: &mut Vec<u8>) {
    block.push(if source.one_in(3) { 0x40 } else { 0x00 });
    for text in [name, value] {
        let length = text.len();
        if length < 127 {
            block.push(u8::try_from(length).expect("below 127"));
        } else {
            block.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                block.push(u8::try_from(rest % 128 + 128).expect("a byte"));
                rest /= 128;
            }
            block.push(u8::try_from(rest).expect("a byte"));
        }
        block.extend_from_slice(text.as_bytes());
    }
}

fn run(input: &[u8]) {
    let (_, pieces) = pieces::split(input);
    runtime::run(async {
        let node = Node::start(level::NEWEST).await;
        let (client, server) = tokio::io::duplex(64 << 10);
        let lines = stream::iter([Ok(server)]).chain(stream::pending());
        let serving = tripod_port::serve(Listener::within(lines), node.served(), std::future::pending());
        let serving = tokio::spawn(serving);
        let (mut answers, mut calls) = tokio::io::split(client);
        let reading = tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while matches!(answers.read(&mut bytes).await, Ok(1..)) {}
        });
        for piece in pieces {
            if calls.write_all(piece).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // As long as a silent client is waited for, and longer.
        tokio::time::sleep(FAR).await;
        drop(calls);
        reading.abort();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!serving.is_finished(), "one connection ended the port");
        serving.abort();
        node.check();
    });
}
