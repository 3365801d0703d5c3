//! What nodes of 2.0.0 asked their scheduler, and that ours answers the same, byte for byte.

use bytes::BytesMut;
use serde::Deserialize;
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::ps::Frame;

use crate::nodes::Node;
use crate::support::Cluster;

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

    /// Sends what was captured, and expects what was captured of the answer.
    async fn replay(&self, node: &mut Node, command: &str) {
        let asked = self.frame(&format!("{command} request (connection to scheduler)"));
        node.line.send(&asked.encode()).await;
        let expected = self.frame(&format!("{command} response (connection to scheduler)"));
        assert_eq!(node.line.hear().await, Some(expected), "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_of_2_0_0_is_answered_as_by_its_own_scheduler() {
    let capture = Capture::of("ps_2.0_1w2s_full.jsonl");
    let cluster = Cluster::of(1, 2).await;
    let mut server = Node::server(&cluster, "srv-a", 40053);
    for command in ["HEARTBEAT", "REGISTER", "FINISH"] {
        capture.replay(&mut server, command).await;
    }
}

#[tokio::test(start_paused = true)]
async fn servers_of_2_0_0_that_were_scaled_are_answered_as_they_were() {
    let capture = Capture::of("ps_ext_scale_out_in.jsonl");
    let cluster = Cluster::of(1, 2).await;
    let mut server = Node::server(&cluster, "srv-a", 38069);
    let mut other = Node::server(&cluster, "srv-b", 38070);
    capture.replay(&mut server, "REGISTER").await;
    other.register().await;
    for command in ["SCALE_OUT_DONE", "SCALE_IN_DONE"] {
        capture.replay(&mut server, command).await;
    }
    capture.replay(&mut other, "FINISH").await;
}
