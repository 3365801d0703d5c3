//! What workers of 2.0.0 and 2.10.0 asked MindSpore's own scheduler, and that ours answers the same, byte for byte.

use tripod_mindspore::wire::rpc0::Frame;

use crate::capture::Capture;
use crate::support::{Client, Cluster, of_2_0, of_2_10};

/// Sends what was captured, and expects what was captured of the answer; the addresses are those of another port.
async fn replay(capture: &Capture, client: &mut Client, asked: &str, outcome: &str) {
    let question: Frame = capture.frame(asked);
    client.send(&question.encode()).await;
    let expected = Frame { to: question.to, ..capture.frame(&format!("{outcome} reply to {asked}")) };
    assert_eq!(client.hear().await, Some(expected), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_2_0_0_is_answered_as_by_its_own_scheduler() {
    let capture = Capture::of("topo_2.0_2w.jsonl");
    let cluster = Cluster::of(2).await;
    let (mut control, mut metadata, mut other) = (cluster.connect(), cluster.connect(), cluster.connect());
    replay(&capture, &mut control, "kRegistration", "kSuccess").await;
    replay(&capture, &mut control, "kHeartbeat", "kSuccess").await;
    assert_eq!(other.register(&of_2_0("0")).await.rank_id, 1, "in order of arrival");
    replay(&capture, &mut metadata, "kReadMetadata", "kValidMetadata").await;
    metadata.send(&capture.frame::<Frame>("kWriteMetadata").encode()).await;
    let (invalid, value) = metadata.read("MCCL_COLLECTIVE_RANK_MS_WORKER_0").await;
    assert_eq!((invalid.as_str(), &value[..]), ("11", &b""[..]));
    let (valid, value) = metadata.read("MCCL_COLLECTIVE_RANK_MS_WORKER_1").await;
    assert_eq!((valid.as_str(), &value[..]), ("10", &b"192.0.2.2:46873"[..]), "what was captured as written");
    replay(&capture, &mut metadata, "kGetHostNames", "kValidMetadata").await;
    replay(&capture, &mut control, "kUnregistration", "kSuccess").await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_2_10_0_is_answered_as_by_its_own_scheduler() {
    let capture = Capture::of("topo_2.10_2w.jsonl");
    let cluster = Cluster::of(2).await;
    let (mut control, mut metadata, mut other) = (cluster.connect(), cluster.connect(), cluster.connect());
    replay(&capture, &mut control, "kRegistration", "kSuccess").await;
    replay(&capture, &mut control, "kHeartbeat", "kSuccess").await;
    assert_eq!(other.register(&of_2_10("1")).await.rank_id, 1);
    metadata.send(&capture.frame::<Frame>("kWriteMetadata").encode()).await;
    replay(&capture, &mut metadata, "kReadMetadata", "kInvalidMetadata").await;
    metadata.write("MCCL_COLLECTIVE_RANK_MS_WORKER_0", "127.0.0.1:8118").await;
    replay(&capture, &mut metadata, "kReadMetadata", "kValidMetadata").await;
    replay(&capture, &mut metadata, "kGetHostNames", "kValidMetadata").await;
    replay(&capture, &mut control, "kUnregistration", "kSuccess").await;
}
