//! What is written in place is sealed: played stores are told to, and what they say is in the log.

use std::collections::BTreeSet;

use tokio::task::JoinHandle;
use tonic::{Code, Response, Status};
use tripod_proto::mars::v1 as pb;
use tripod_wait::until;

use crate::mutables::{get, tensor};
use crate::sealing_store::{Plan, Store};
use crate::support::Node;

type Sealed = Result<pb::SealMutableTileableResponse, Status>;

/// Asks for the seal of `m`.
fn seal(node: &Node) -> JoinHandle<Sealed> {
    let mut mars = node.mars();
    tokio::spawn(async move {
        let request = pb::SealMutableTileableRequest {
            session_id: "s".to_owned(),
            name: "m".to_owned(),
            timestamp_ns: Some(7),
            ..Default::default()
        };
        mars.seal_mutable_tileable(request).await.map(Response::into_inner)
    })
}

async fn create(node: &Node, request: pb::CreateMutableTensorRequest) -> pb::MutableInfo {
    let made = node.mars().create_mutable_tensor(request).await.expect("made").into_inner();
    made.info.expect("an info")
}

#[tokio::test]
async fn a_store_makes_the_objects_of_what_is_sealed_and_the_tensor_is_a_tileable() {
    let node = Node::with_session().await;
    let store = Store::start(&node, Plan::Make).await;
    let info = create(&node, tensor("m")).await;
    let sealed = seal(&node).await.expect("no panic").expect("sealed");
    assert!(sealed.tileable_key.starts_with("m@"), "{}", sealed.tileable_key);
    let meta = sealed.meta.expect("a meta");
    assert!(meta.found && meta.chunk_keys.len() == 3, "{meta:?}");
    assert_eq!(get(&node, "m", "").await.expect("found").state(), pb::MutableState::Sealed);

    let [call] = <[pb::SealMutableChunksRequest; 1]>::try_from(store.calls()).expect("it is told once");
    assert_eq!((call.session_id.as_str(), call.epoch), ("s", 1));
    let keys: Vec<&String> = call.chunks.iter().map(|chunk| &chunk.key).collect();
    assert_eq!(keys, info.chunks.iter().map(|chunk| &chunk.key).collect::<Vec<_>>());
    let objects: BTreeSet<u64> = call.chunks.iter().map(|chunk| chunk.object_id).collect();
    assert_eq!(objects.len(), 3, "each chunk is an object of its own");
}

#[tokio::test]
async fn a_store_that_went_away_while_it_was_told_is_told_again_when_it_is_back() {
    let node = Node::with_session().await;
    let mut store = Store::start(&node, Plan::Hold).await;
    create(&node, tensor("m")).await;
    let sealing = seal(&node);
    store.holds().await;
    node.lines.close(&store.address);
    until("the call breaks", || (store.held() == 0).then_some(())).await;
    store.plan(Plan::Make);
    store.listen(&node);
    sealing.await.expect("no panic").expect("sealed");
    let calls = store.calls();
    assert!(calls.len() >= 2 && calls.iter().all(|call| *call == calls[0]), "the same again: {calls:?}");
}

#[tokio::test]
async fn a_store_that_does_not_answer_delays_no_other() {
    let node = Node::with_session().await;
    let (first, second) = (Store::start(&node, Plan::Hold).await, Store::start(&node, Plan::Make).await);
    create(&node, tensor("m")).await;
    let sealing = seal(&node);
    first.holds().await;
    let job = node.backend.state().jobs()[0].id;
    let waited_for = || {
        let orders = node.backend.state().mars_seal_orders(job).into_iter();
        orders.map(|order| order.store).collect::<Vec<_>>()
    };
    until("the other one has sealed", || (waited_for() == [first.address.clone()]).then_some(())).await;
    assert_eq!((first.calls().len(), second.calls().len()), (1, 1));
    first.plan(Plan::Make);
    sealing.await.expect("no panic").expect("sealed");
}

#[tokio::test]
async fn what_its_only_store_refuses_is_open_again_with_the_next_epoch() {
    for code in [Code::Aborted, Code::FailedPrecondition, Code::NotFound] {
        let node = Node::with_session().await;
        let store = Store::start(&node, Plan::Fail(code)).await;
        create(&node, tensor("m")).await;
        let refused = seal(&node).await.expect("no panic").expect_err("refused");
        assert_eq!(refused.code(), Code::Aborted, "{refused}");
        assert_eq!(store.calls().len(), 1, "a refusal is not asked for twice");
        let info = get(&node, "m", "").await.expect("found");
        assert_eq!((info.state(), info.epoch), (pb::MutableState::Open, 2));

        store.plan(Plan::Make);
        seal(&node).await.expect("no panic").expect("sealed");
        assert_eq!(store.calls()[1].epoch, 2);
    }
}

#[tokio::test]
async fn what_one_store_refuses_the_next_one_seals_that_has_it() {
    let node = Node::with_session().await;
    let first = Store::start(&node, Plan::Fail(Code::DataLoss)).await;
    let second = Store::start(&node, Plan::Make).await;
    let whole = pb::CreateMutableTensorRequest { chunk_size: vec![5], replicas: 2, ..tensor("m") };
    create(&node, whole).await;
    seal(&node).await.expect("no panic").expect("sealed");
    assert_eq!((first.calls().len(), second.calls().len()), (1, 1));
    assert_eq!(get(&node, "m", "").await.expect("found").epoch, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_store_has_made_and_told_nobody_of_is_not_sealed() {
    let node = Node::with_session().await;
    let first = Store::start(&node, Plan::Silent).await;
    let second = Store::start(&node, Plan::Make).await;
    let whole = pb::CreateMutableTensorRequest { chunk_size: vec![5], replicas: 2, ..tensor("m") };
    create(&node, whole).await;
    let sealed = seal(&node).await.expect("no panic").expect("the other store has the chunk, too");
    assert!(first.calls().len() > 1, "it is asked again");
    assert_eq!(second.calls().len(), 1);
    let delete = pb::DeleteSessionRequest { session_id: "s".to_owned(), ..Default::default() };
    node.mars().delete_session(delete).await.expect("deleted");
    let job = node.backend.state().jobs()[0].id;
    let totals = node.backend.state().ray(job).expect("a scheduler").totals();
    assert_eq!(totals.objects_live, 0, "what was promised for {} is gone with it", sealed.tileable_key);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_never_able_to_is_given_up_after_twenty_attempts() {
    let node = Node::with_session().await;
    let store = Store::start(&node, Plan::Fail(Code::Unavailable)).await;
    create(&node, tensor("m")).await;
    let refused = seal(&node).await.expect("no panic").expect_err("given up");
    assert_eq!(refused.code(), Code::Aborted, "{refused}");
    assert_eq!(store.calls().len(), 20);
    assert_eq!(get(&node, "m", "").await.expect("found").epoch, 2);
}

#[tokio::test]
async fn orders_end_with_the_leader_and_the_next_one_goes_on() {
    let node = Node::with_session().await;
    let store = Store::start(&node, Plan::Hold).await;
    create(&node, tensor("m")).await;
    let begun = seal(&node);
    store.holds().await;
    // Who asks again waits for the same.
    begun.abort();
    node.backend.depose();
    until("the call ends with the leader", || (store.held() == 0).then_some(())).await;
    store.plan(Plan::Make);
    node.backend.elect();
    let sealed = seal(&node).await.expect("no panic").expect("sealed");
    assert!(sealed.tileable_key.starts_with("m@"));
    assert_eq!(get(&node, "m", "").await.expect("found").epoch, 1);
}

#[tokio::test]
async fn nobody_is_told_any_more_when_what_was_sealed_is_deleted() {
    let node = Node::with_session().await;
    let store = Store::start(&node, Plan::Hold).await;
    create(&node, tensor("m")).await;
    let sealing = seal(&node);
    store.holds().await;
    let delete = pb::DeleteMutableTileableRequest {
        session_id: "s".to_owned(),
        name: "m".to_owned(),
        ..Default::default()
    };
    assert!(node.mars().delete_mutable_tileable(delete).await.expect("deleted").into_inner().deleted);
    until("the call ends", || (store.held() == 0).then_some(())).await;
    let gone = sealing.await.expect("no panic").expect_err("it is gone");
    assert_eq!(gone.code(), Code::NotFound, "{gone}");
}
