//! A worker as far as its frames go.

use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tripod_mindspore_wire::{Frame, rpc0};
use tripod_proto::mindspore::topology as pb;

use crate::support::soon;

/// One connection.
pub(super) struct Client {
    stream: DuplexStream,
    buffer: BytesMut,
}

/// The next frame; `None` when the other end ends the connection.
pub(super) async fn next<F: Frame>(stream: &mut DuplexStream, buffer: &mut BytesMut) -> Option<F> {
    loop {
        if let Some(frame) = F::take(buffer).expect("a frame") {
            return Some(frame);
        }
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return None;
        }
    }
}

pub(super) fn frame(name: &str, from: &str, body: impl Into<Bytes>) -> rpc0::Frame {
    let part = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    rpc0::Frame { name: part(name), to: part("@agent:8400"), from: part(from), body: body.into() }
}

impl Client {
    pub(super) fn new(stream: DuplexStream) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) {
        // An agent that ends the connection takes no more of it.
        let _ = self.stream.write_all(bytes).await;
    }

    pub(super) async fn say(&mut self, name: &str, body: impl Into<Bytes>) {
        self.send(&frame(name, "@", body).encode()).await;
    }

    /// What comes next, if the connection does not end.
    pub(super) async fn hear<F: Frame>(&mut self) -> Option<F> {
        soon(next(&mut self.stream, &mut self.buffer)).await
    }

    /// The name and the body of an answer.
    pub(super) async fn ask(&mut self, name: &str, body: impl Into<Bytes>) -> (Bytes, Bytes) {
        self.say(name, body).await;
        let answer = self.hear::<rpc0::Frame>().await.expect("an answer");
        (answer.name, answer.body)
    }

    pub(super) async fn register(&mut self, node: &str) -> (Bytes, Bytes) {
        self.ask("0", registration(node)).await
    }

    /// [`Self::register`], without waiting for the answer.
    pub(super) async fn come(&mut self, node: &str) {
        self.say("0", registration(node)).await;
    }

    pub(super) async fn unregister(&mut self, node: &str) -> (Bytes, Bytes) {
        self.ask("1", unregistration(node)).await
    }

    /// [`Self::unregister`], without waiting for the answer.
    pub(super) async fn leave(&mut self, node: &str) {
        self.say("1", unregistration(node)).await;
    }

    pub(super) async fn beat(&mut self, node: &str) -> (Bytes, Bytes) {
        self.ask("2", pb::HeartbeatMessage { node_id: node.into() }.encode_to_vec()).await
    }

    pub(super) async fn write(&mut self, name: &str, value: &str) {
        self.say("6", entry(name, value)).await;
    }

    pub(super) async fn read(&mut self, name: &str) -> (Bytes, Bytes) {
        self.ask("7", entry(name, "")).await
    }

    pub(super) async fn delete(&mut self, name: &str) -> (Bytes, Bytes) {
        self.ask("8", entry(name, "")).await
    }
}

fn registration(node: &str) -> Vec<u8> {
    let message = pb::RegistrationMessage {
        node_id: node.into(),
        host_name: "vm".into(),
        role: "MS_WORKER".into(),
        ..Default::default()
    };
    message.encode_to_vec()
}

fn unregistration(node: &str) -> Vec<u8> {
    pb::UnregistrationMessage { node_id: node.into() }.encode_to_vec()
}

fn entry(name: &str, value: &str) -> Vec<u8> {
    let value = Bytes::copy_from_slice(value.as_bytes());
    pb::MetadataMessage { name: name.into(), value }.encode_to_vec()
}
