//! Graphs that come in parts, and those that are proposed in parts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::Instant;
use tonic::{Code, Status};
use tripod_gateway::Mishap;
use tripod_proto::mars::v1 as pb;
use tripod_state::{Command, Envelope, mars};

use crate::support::{Machine, Node, chunk, submission, sum_of_ones};

/// Commands of one graph that are proposed and not answered.
const UNDER_WAY: usize = 8;
/// Chunks of a graph that is proposed in more than twice as many parts, and fits one request.
const CHUNKS: usize = 165;

/// Submits one with 100 KB of attributes for each chunk.
async fn submit_large(node: &Node) -> Result<pb::SubmitGraphResponse, Status> {
    let nodes = (0..CHUNKS).map(|place| pb::ChunkNode {
        payload: vec![b'x'; 100_000].into(),
        ..chunk(&format!("c{place}"), &[])
    });
    let request = pb::SubmitChunkGraphRequest {
        session_id: "s".to_owned(),
        graph_key: "g".to_owned(),
        graph: Some(pb::ChunkGraph { nodes: nodes.collect() }),
        ..Default::default()
    };
    node.mars().submit_chunk_graph(request).await.map(tonic::Response::into_inner)
}

/// Behind how many chunks a part belongs, if the command is one.
fn part(envelope: &Envelope) -> Option<u64> {
    match &envelope.command {
        Command::Mars(mars::Command::Ask { request: mars::Request::Add { part, .. }, .. }) => {
            Some(part.chunks_before)
        }
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn parts_are_proposed_before_those_ahead_of_them_are_answered_and_few_at_a_time() {
    const EACH: Duration = Duration::from_millis(100);
    let node = Node::with_session().await;
    let begun = Arc::<Mutex<Vec<Instant>>>::default();
    let noted = Arc::clone(&begun);
    node.backend.set_mishaps(move |envelope| {
        if part(envelope).is_none() {
            return Mishap::Success;
        }
        noted.lock().push(Instant::now());
        Mishap::Slow(EACH)
    });
    let submitted = submit_large(&node).await.expect("submitted");
    assert_eq!((submitted.created, submitted.chunk_count), (true, CHUNKS as u64));
    let begun = begun.lock().clone();
    assert!(begun.len() >= 2 * UNDER_WAY, "{} parts", begun.len());
    for (place, at) in begun.iter().enumerate() {
        let answered = (place + 1).saturating_sub(UNDER_WAY) as u128;
        let waited = at.duration_since(begun[0]).as_millis() / EACH.as_millis();
        assert_eq!(waited, answered, "part {place} waited for as many answers as it must");
    }
}

#[tokio::test(start_paused = true)]
async fn parts_that_overtake_each_other_and_lose_their_answers_make_one_graph() {
    let node = Node::with_session().await;
    let proposed = Arc::<Mutex<Vec<u64>>>::default();
    let noted = Arc::clone(&proposed);
    node.backend.set_mishaps(move |envelope| {
        let Some(before) = part(envelope) else { return Mishap::Success };
        let mut noted = noted.lock();
        noted.push(before);
        match noted.len() {
            // It is late, so all behind it come too early.
            2 => Mishap::NoLeader,
            15 => Mishap::UnknownButApplied,
            20 => Mishap::UnknownAndLost,
            _ => Mishap::Success,
        }
    });
    let submitted = submit_large(&node).await.expect("submitted");
    assert_eq!((submitted.created, submitted.chunk_count), (true, CHUNKS as u64));
    let again = submit_large(&node).await.expect("the same");
    assert_eq!((again.created, again.chunk_count), (false, CHUNKS as u64));

    let proposed = proposed.lock().clone();
    let late = proposed[1];
    let second = proposed.iter().skip(2).position(|before| *before == late).expect("it came again");
    let overtaking: BTreeSet<u64> = proposed[2..2 + second].iter().copied().collect();
    assert!(!overtaking.is_empty() && overtaking.len() <= UNDER_WAY, "{proposed:?}");
    assert!(overtaking.iter().all(|before| *before > late), "{proposed:?}");
    // Each of those came again, and nothing else but what had lost its answer.
    let parts: BTreeSet<u64> = proposed.iter().copied().collect();
    assert!(proposed.len() <= parts.len() + 2 * UNDER_WAY + 3, "{proposed:?}");
}

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
