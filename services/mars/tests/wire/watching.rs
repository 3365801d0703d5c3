//! Streams: graphs as they change, workers as they come and go.

use tonic::Code;
use tripod_proto::mars::v1 as pb;

use crate::support::{Machine, Node, sum_of_ones};

#[tokio::test]
async fn a_graph_is_told_of_until_it_has_ended() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    node.submit("g", sum_of_ones()).await.expect("submitted");
    let request = pb::WatchGraphRequest { session_id: "s".to_owned(), graph_key: "g".to_owned() };
    let mut told = node.mars().watch_graph(request).await.expect("watched").into_inner();
    let (mut last, mut before) = (None, -1.0);
    while let Some(message) = told.message().await.expect("no error") {
        let info = message.info.expect("an info");
        assert!(info.progress >= before, "it does not go back");
        before = info.progress;
        last = Some(info);
    }
    assert_eq!(last.expect("some").state(), pb::GraphState::Succeeded);
    let request = pb::WatchGraphRequest { session_id: "s".to_owned(), graph_key: "other".to_owned() };
    assert_eq!(node.mars().watch_graph(request).await.expect_err("none").code(), Code::NotFound);
}

#[tokio::test]
async fn workers_are_told_of_when_they_are_others_than_those_of_a_version() {
    let node = Node::with_session().await;
    let request = pb::WatchWorkersRequest { from_version: 0 };
    let mut told = node.mars().watch_workers(request).await.expect("watched").into_inner();
    let first = told.message().await.expect("no error").expect("a list");
    assert!(first.changed.is_empty() && first.removed.is_empty() && first.version > 0);
    let machine = Machine::start(&node).await;
    let ready = loop {
        let next = told.message().await.expect("no error").expect("a list");
        if next.changed.iter().any(|worker| worker.status() == pb::WorkerStatus::Ready) {
            break next;
        }
    };
    assert_eq!(ready.changed[0].worker_id, machine.address);
    // Who has that version is told nothing; who has another one, all.
    let again = pb::WatchWorkersRequest { from_version: first.version };
    let mut told = node.mars().watch_workers(again).await.expect("watched").into_inner();
    let next = told.message().await.expect("no error").expect("a list");
    assert_eq!((next.version, next.changed), (ready.version, ready.changed));
}
