//! What nodes of 2.0.0 asked their scheduler, and that ours answers the same, byte for byte.

use tripod_mindspore::wire::ps::Frame;

use crate::capture::Capture;
use crate::nodes::Node;
use crate::support::Cluster;

/// Sends what was captured, and expects what was captured of the answer.
async fn replay(capture: &Capture, node: &mut Node, command: &str) {
    let asked: Frame = capture.frame(&format!("{command} request (connection to scheduler)"));
    node.line.send(&asked.encode()).await;
    let expected = capture.frame(&format!("{command} response (connection to scheduler)"));
    assert_eq!(node.line.hear().await, Some(expected), "{command}");
}

#[tokio::test(start_paused = true)]
async fn a_server_of_2_0_0_is_answered_as_by_its_own_scheduler() {
    let capture = Capture::of("ps_2.0_1w2s_full.jsonl");
    let cluster = Cluster::of(1, 2).await;
    let mut server = Node::server(&cluster, "srv-a", 40053);
    for command in ["HEARTBEAT", "REGISTER", "FINISH"] {
        replay(&capture, &mut server, command).await;
    }
}

#[tokio::test(start_paused = true)]
async fn servers_of_2_0_0_that_were_scaled_are_answered_as_they_were() {
    let capture = Capture::of("ps_ext_scale_out_in.jsonl");
    let cluster = Cluster::of(1, 2).await;
    let mut server = Node::server(&cluster, "srv-a", 38069);
    let mut other = Node::server(&cluster, "srv-b", 38070);
    replay(&capture, &mut server, "REGISTER").await;
    other.register().await;
    for command in ["SCALE_OUT_DONE", "SCALE_IN_DONE"] {
        replay(&capture, &mut server, command).await;
    }
    replay(&capture, &mut other, "FINISH").await;
}
