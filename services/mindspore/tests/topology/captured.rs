//! What workers of 2.0.0 and 2.10.0 asked MindSpore's own scheduler, and that ours answers the same, byte for byte.

use bytes::BytesMut;
use serde::Deserialize;
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::rpc0::Frame;

use crate::support::{Client, Cluster, of_2_0, of_2_10};

#[derive(Deserialize)]
struct Vector {
    capture: String,
    name: String,
    hex: String,
}

/// The frames of one capture.
struct Capture(Vec<Vector>);

impl Capture {
    fn of(name: &str) -> Self {
        let all: Vec<Vector> = serde_json::from_str(include_str!("../golden_vectors.json")).unwrap();
        Self(all.into_iter().filter(|vector| vector.capture == name).collect())
    }

    fn frame(&self, name: &str) -> Frame {
        let vector = self.0.iter().find(|vector| vector.name == name).unwrap();
        let digit = |at: usize| u8::from_str_radix(&vector.hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..vector.hex.len()).step_by(2).map(digit).collect();
        Frame::take(&mut BytesMut::from(&bytes[..])).unwrap().unwrap()
    }

    /// Sends what was captured, and expects what was captured of the answer; the addresses are those of another port.
    async fn replay(&self, client: &mut Client, asked: &str, outcome: &str) {
        let question = self.frame(asked);
        client.send(&question.encode()).await;
        let expected = Frame { to: question.to, ..self.frame(&format!("{outcome} reply to {asked}")) };
        assert_eq!(client.hear().await, Some(expected), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_2_0_0_is_answered_as_by_its_own_scheduler() {
    let capture = Capture::of("topo_2.0_2w.jsonl");
    let cluster = Cluster::of(2).await;
    let (mut control, mut metadata, mut other) = (cluster.connect(), cluster.connect(), cluster.connect());
    capture.replay(&mut control, "kRegistration", "kSuccess").await;
    capture.replay(&mut control, "kHeartbeat", "kSuccess").await;
    assert_eq!(other.register(&of_2_0("0")).await.rank_id, 1, "in order of arrival");
    capture.replay(&mut metadata, "kReadMetadata", "kValidMetadata").await;
    metadata.send(&capture.frame("kWriteMetadata").encode()).await;
    let (invalid, value) = metadata.read("MCCL_COLLECTIVE_RANK_MS_WORKER_0").await;
    assert_eq!((invalid.as_str(), &value[..]), ("11", &b""[..]));
    let (valid, value) = metadata.read("MCCL_COLLECTIVE_RANK_MS_WORKER_1").await;
    assert_eq!((valid.as_str(), &value[..]), ("10", &b"192.0.2.2:46873"[..]), "what was captured as written");
    capture.replay(&mut metadata, "kGetHostNames", "kValidMetadata").await;
    capture.replay(&mut control, "kUnregistration", "kSuccess").await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_2_10_0_is_answered_as_by_its_own_scheduler() {
    let capture = Capture::of("topo_2.10_2w.jsonl");
    let cluster = Cluster::of(2).await;
    let (mut control, mut metadata, mut other) = (cluster.connect(), cluster.connect(), cluster.connect());
    capture.replay(&mut control, "kRegistration", "kSuccess").await;
    capture.replay(&mut control, "kHeartbeat", "kSuccess").await;
    assert_eq!(other.register(&of_2_10("1")).await.rank_id, 1);
    metadata.send(&capture.frame("kWriteMetadata").encode()).await;
    capture.replay(&mut metadata, "kReadMetadata", "kInvalidMetadata").await;
    metadata.write("MCCL_COLLECTIVE_RANK_MS_WORKER_0", "127.0.0.1:8118").await;
    capture.replay(&mut metadata, "kReadMetadata", "kValidMetadata").await;
    capture.replay(&mut metadata, "kGetHostNames", "kValidMetadata").await;
    capture.replay(&mut control, "kUnregistration", "kSuccess").await;
}
