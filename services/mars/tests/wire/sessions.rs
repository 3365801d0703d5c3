//! Sessions: made, found, listed, deleted.

use tonic::Code;
use tripod_proto::mars::v1 as pb;

use crate::support::{Machine, Node, sum_of_ones};

fn create(session_id: &str, if_not_exist: bool) -> pb::CreateSessionRequest {
    pb::CreateSessionRequest { session_id: session_id.to_owned(), if_not_exist, ..Default::default() }
}

async fn has(node: &Node, session_id: &str) -> bool {
    let request = pb::HasSessionRequest { session_id: session_id.to_owned() };
    node.mars().has_session(request).await.expect("answered").into_inner().exists
}

#[tokio::test]
async fn a_session_is_made_once_found_and_deleted_once() {
    let node = Node::start().await;
    assert!(!has(&node, "s").await);
    let made = node.mars().create_session(create("s", false)).await.expect("made").into_inner();
    assert!(made.created && made.session_id == "s");
    assert!(has(&node, "s").await);
    let again = node.mars().create_session(create("s", false)).await.expect_err("it is there");
    assert_eq!(again.code(), Code::AlreadyExists);
    let same = node.mars().create_session(create("s", true)).await.expect("that is fine").into_inner();
    assert!(!same.created);

    let delete =
        |if_exist| pb::DeleteSessionRequest { session_id: "s".to_owned(), if_exist, ..Default::default() };
    assert!(node.mars().delete_session(delete(false)).await.expect("deleted").into_inner().deleted);
    let gone = node.mars().delete_session(delete(false)).await.expect_err("it is gone");
    assert_eq!(gone.code(), Code::NotFound);
    assert!(!node.mars().delete_session(delete(true)).await.expect("that is fine").into_inner().deleted);
    assert!(!has(&node, "s").await);
}

#[tokio::test]
async fn who_names_no_session_gets_one_that_nobody_guesses_and_a_request_that_comes_again_the_same() {
    let node = Node::start().await;
    let request = pb::CreateSessionRequest { request_id: "r1".to_owned(), ..create("", false) };
    let first = node.mars().create_session(request.clone()).await.expect("made").into_inner();
    assert_eq!(first.session_id.len(), 32);
    let again = node.mars().create_session(request).await.expect("the same").into_inner();
    assert_eq!((again.session_id, again.created), (first.session_id.clone(), true));
    let other = node.mars().create_session(create("", false)).await.expect("made").into_inner();
    assert_ne!(other.session_id, first.session_id);
}

#[tokio::test]
async fn what_is_no_id_is_refused() {
    let node = Node::start().await;
    for wrong in ["a b", "a/b", &"x".repeat(129)] {
        let refused = node.mars().create_session(create(wrong, false)).await.expect_err("no id");
        assert!(
            [Code::InvalidArgument, Code::OutOfRange, Code::ResourceExhausted].contains(&refused.code()),
            "{refused}"
        );
    }
    let labels = (0..65).map(|label| (format!("l{label}"), String::new())).collect();
    let many = pb::CreateSessionRequest { labels, ..create("s", false) };
    assert_eq!(node.mars().create_session(many).await.expect_err("many").code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn sessions_are_listed_with_what_they_hold_and_idle_ones_since_when() {
    let node = Node::start().await;
    let machine = Machine::start(&node).await;
    let labels = [("team".to_owned(), "a".to_owned())].into();
    let request = pb::CreateSessionRequest { labels, ..create("s", false) };
    node.mars().create_session(request).await.expect("made");
    node.submit("g", sum_of_ones()).await.expect("submitted");
    node.ended("g").await;
    let listed = node.mars().list_sessions(pb::ListSessionsRequest {}).await.expect("listed").into_inner();
    let [session] = &listed.sessions[..] else { panic!("{:?}", listed.sessions) };
    assert_eq!((session.session_id.as_str(), session.graphs), ("s", 1));
    assert_eq!(session.labels["team"], "a");
    assert!(session.last_idle_time.is_some(), "nothing runs");
    assert!(!machine.keys().is_empty());
}

#[tokio::test]
async fn without_a_leader_a_call_is_held_and_a_refusal_says_where_the_leader_is_if_it_is_known() {
    let node = Node::with_session().await;
    node.backend.depose();
    let mut mars = node.mars();
    let held = tokio::spawn(async move { mars.create_session(create("t", false)).await });
    tripod_wait::until("it is held", || (node.gateway.held_calls() > 0).then_some(())).await;
    node.backend.elect();
    assert!(held.await.expect("it ends").expect("made").into_inner().created);
}
