//! What the scheduler is told, whatever becomes of its nodes.

use std::collections::BTreeSet;

use tripod_objstore::local::Connection;
use tripod_objstore::{Error, Made, ObjectId, Run, Teller};
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::heartbeat_response::Order;

use crate::scheduler::{Mood, Node};
use crate::support::{Scene, get, registered};

#[tokio::test]
async fn a_store_registers_once_as_one_that_knows_our_fields() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let registered = scene.node.facts.lock().expect("not poisoned").registered.clone();
    let [(address, (session, sequence, acknowledged), extended)] = registered.try_into().expect("one");
    assert_eq!((address.as_str(), extended), (store.store.address(), true));
    assert_eq!((session.len(), sequence, acknowledged), (32, 1, 0));
    assert!(session.chars().all(|digit| digit.is_ascii_hexdigit()));
}

#[tokio::test]
async fn heartbeats_say_what_is_used() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    store.put(1, 1000).await;
    let beat =
        |facts: &crate::scheduler::Facts| facts.beats.iter().find(|beat| beat.used_bytes == 1000).cloned();
    let beat = scene.node.until("a heartbeat", beat).await;
    assert_eq!((beat.kind(), beat.id, beat.capacity_bytes), (Kind::Store, store.id.0, 64 << 20));
    let count = scene.node.facts.lock().expect("not poisoned").beats.len();
    scene.node.until("more heartbeats", |facts| (facts.beats.len() > count + 3).then_some(())).await;
}

#[tokio::test]
async fn the_attempt_that_made_an_object_is_told_with_it() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let run = Run { operation: 0, attempt: 3 };
    store.local.put(ObjectId(1), vec![1].into(), 0, Some(run)).await.expect("stored");
    scene.node.until_ready(store.id, 1).await;
    let told = scene.node.facts.lock().expect("not poisoned").ready.clone();
    assert_eq!(told[0].run, Some((0, 3)));
}

#[tokio::test]
async fn every_object_is_told_once_and_in_order_though_nodes_fail() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    scene.node.will(&[
        Mood::Unavailable,
        Mood::LosesAnswer,
        Mood::Unavailable,
        Mood::LosesAnswer,
        Mood::LosesAnswer,
    ]);
    for object in 0..500 {
        store.put(object, 10).await;
    }
    scene.node.until_ready(store.id, 499).await;
    assert_eq!(scene.node.ready(), (0..500).collect::<Vec<_>>());
    let calls = scene.node.facts.lock().expect("not poisoned").calls.clone();
    assert!(calls.len() < 400, "many objects are told in one call; there were {}", calls.len());
    let sequences: BTreeSet<u64> = calls.iter().map(|call| call.1).collect();
    // The first of the session was the registration.
    assert_eq!(sequences, (2..2 + sequences.len() as u64).collect());
    assert!(calls.iter().all(|call| call.2 == call.1 - 1 && call.0 == calls[0].0), "{calls:?}");
}

#[tokio::test]
async fn objects_are_told_to_another_node_when_one_is_gone() {
    let scene = Scene::new().await;
    let goes = scene.node.listen_apart();
    let mut config = scene.config();
    config.endpoints.insert(0, goes.address.to_string());
    let store = scene.store_with(config).await;
    store.put(1, 10).await;
    scene.node.until_ready(store.id, 1).await;
    // With the connection that stands: by it the store would be answered on.
    drop(goes);
    store.put(2, 10).await;
    scene.node.until_ready(store.id, 2).await;
    assert_eq!(scene.node.ready(), [1, 2]);
}

#[tokio::test]
async fn a_session_that_is_not_known_any_more_is_followed_by_another() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    scene.node.will(&[Mood::SessionExpired]);
    store.put(1, 10).await;
    scene.node.until_ready(store.id, 1).await;
    let calls = scene.node.facts.lock().expect("not poisoned").calls.clone();
    assert_eq!((calls[0].1, calls[1].1), (2, 1));
    assert_ne!(calls[0].0, calls[1].0);
    assert_eq!(registered(&store.store).await, store.id);
}

#[tokio::test]
async fn an_object_that_the_scheduler_does_not_want_is_dropped() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    scene.node.will(&[Mood::Refuses]);
    store.put(1, 10).await;
    scene.node.until("it is told", |facts| (!facts.calls.is_empty()).then_some(())).await;
    store.put(2, 10).await;
    scene.node.until_ready(store.id, 2).await;
    assert_eq!(store.info().await.objectid, [2]);
}

/// Gives the store up and waits for it to come back under another id.
async fn given_up(scene: &Scene, give_up: impl Fn(&Node)) {
    let mut store = scene.store().await;
    store.put(1, 10).await;
    scene.node.until_ready(store.id, 1).await;
    give_up(&scene.node);
    // A report may be what brings it to light; if not, it comes too late for the old id and is dropped.
    _ = store.local.put(ObjectId(2), vec![2].into(), 0, None).await;
    let mut ids = store.store.registered();
    let other =
        tripod_wait::within("another id", ids.wait_for(|id| id.is_some_and(|id| id != store.id))).await;
    let other = other.expect("the store runs").expect("an id");
    let info = store.info().await;
    assert_eq!((info.objstoreid, info.objectid, info.used_bytes), (Some(other.0), vec![], 0));
    let ended = get(&store.local, 1).await.expect_err("connections ended");
    assert!(matches!(ended, tripod_objstore::local::LocalError::Disconnected(_)), "{ended}");
    let local = Connection::open(store.store.socket(), None).await.expect("connected");
    assert_eq!(local.welcome().store, other);
    local.put(ObjectId(3), vec![3].into(), 0, None).await.expect("stored");
    scene.node.until_ready(other, 3).await;
}

#[tokio::test]
async fn a_store_that_was_given_up_drops_everything_and_registers_anew_when_a_report_says_so() {
    let scene = Scene::new().await;
    given_up(&scene, |node| node.will(&[Mood::Expired])).await;
}

#[tokio::test]
async fn a_store_that_was_given_up_drops_everything_and_registers_anew_when_a_heartbeat_says_so() {
    let scene = Scene::new().await;
    given_up(&scene, |node| node.facts.lock().expect("not poisoned").order = Some(Order::Reregister)).await;
}

#[tokio::test]
async fn a_store_ends_when_the_scheduler_orders_it() {
    let scene = Scene::new().await;
    scene.node.facts.lock().expect("not poisoned").order = Some(Order::Die);
    let running = tripod_objstore::run(scene.config(), std::future::pending());
    let ended = tripod_wait::within("the end of the store", running).await;
    assert!(matches!(ended, Err(Error::ToldToEnd)), "{ended:?}");
}

#[tokio::test]
async fn a_store_ends_when_its_own_process_says_so() {
    let scene = Scene::new().await;
    let node = scene.node.clone();
    let heard =
        async move { node.until("a heartbeat", |facts| (!facts.beats.is_empty()).then_some(())).await };
    assert!(tripod_objstore::run(scene.config(), heard).await.is_ok());
}

#[tokio::test]
async fn what_a_process_ends_without_having_told_is_told_by_the_store() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let worker = Connection::open(store.store.socket(), Some(4)).await.expect("connected");
    let run = Run { operation: 5, attempt: 2 };
    let made = Made { run: Some(run), teller: Teller::Maker };
    for (object, len) in [(1, 10), (2, 1 << 20)] {
        worker.put(ObjectId(object), vec![1; len].into(), 0, made).await.expect("stored");
    }
    drop(worker);
    scene.node.until_ready(store.id, 1).await;
    scene.node.until_ready(store.id, 2).await;
    let told = scene.node.facts.lock().expect("not poisoned").ready.clone();
    assert!(told.iter().all(|told| told.run == Some((5, 2))), "{told:?}");
}
