//! Graphs that come in parts.

use prost::Message as _;
use tonic::{Code, Status};
use tripod_proto::mars::v1 as pb;

use crate::support::{Machine, Node, submission, sum_of_ones};

async fn send(
    node: &Node,
    offset: usize,
    bytes: &[u8],
    last: bool,
) -> Result<pb::SubmitGraphResponse, Status> {
    let part = pb::GraphPart { offset: offset as u64, bytes: bytes.to_vec().into(), last };
    let request =
        pb::SubmitTileableGraphRequest { graph: None, part: Some(part), ..submission("g", Vec::new()) };
    node.mars().submit_tileable_graph(request).await.map(tonic::Response::into_inner)
}

fn bytes() -> Vec<u8> {
    pb::TileableGraph { nodes: sum_of_ones() }.encode_to_vec()
}

#[tokio::test]
async fn a_graph_in_parts_is_submitted_with_the_last_and_is_the_same_as_whole() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    let bytes = bytes();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let begun = send(&node, 0, first, false).await.expect("kept");
    assert_eq!((begun.state(), begun.created), (pb::GraphState::Preparing, false));
    // One that comes again is not there twice.
    let submitted = send(&node, first.len(), second, true).await.expect("submitted");
    assert!(submitted.created && submitted.chunk_count > 4);
    assert_eq!(node.ended("g").await.state(), pb::GraphState::Succeeded);
    assert!(!node.submit("g", sum_of_ones()).await.expect("the same").created);
}

#[tokio::test]
async fn a_part_that_does_not_follow_is_refused_and_the_first_begins_anew() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    let bytes = bytes();
    send(&node, 0, &bytes[..9], false).await.expect("kept");
    let refused = send(&node, 12, &bytes[12..], true).await.expect_err("a gap");
    assert!(refused.message().contains("9"), "{refused}");
    send(&node, 0, &bytes[..5], false).await.expect("anew");
    let submitted = send(&node, 5, &bytes[5..], true).await.expect("submitted");
    assert!(submitted.created);
}

#[tokio::test]
async fn parts_that_are_no_graph_together_are_refused() {
    let node = Node::with_session().await;
    let refused = send(&node, 0, b"\x0a\x7fshort", true).await.expect_err("no graph");
    assert!(refused.code() == Code::InvalidArgument && refused.message().starts_with("part:"), "{refused}");
    let both = pb::SubmitTileableGraphRequest {
        part: Some(pb::GraphPart::default()),
        ..submission("g", sum_of_ones())
    };
    let refused = node.mars().submit_tileable_graph(both).await.expect_err("both");
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_part_that_is_too_large_and_a_graph_of_more_than_a_gibibyte_are_refused() {
    let node = Node::with_session().await;
    let refused = send(&node, 0, &vec![0; (16 << 20) + 1], false).await.expect_err("too large");
    assert!(refused.code() == Code::ResourceExhausted && refused.message().contains("part"), "{refused}");
    let refused = send(&node, 1 << 30, b"x", false).await.expect_err("too far");
    assert!(
        matches!(
            refused.code(),
            Code::ResourceExhausted | Code::FailedPrecondition | Code::OutOfRange | Code::Aborted
        ),
        "{refused}"
    );
}
