//! Processes of the same machine, through the library for them.

use std::time::Duration;

use tonic::Code;
use tripod_objstore::ObjectId;
use tripod_objstore::local::{Connection, LocalError};
use tripod_proto::ray::DeallocateObjectRequest;

use crate::support::{Scene, get, pattern};

fn code<T: std::fmt::Debug>(result: Result<T, LocalError>) -> Code {
    match result.expect_err("refused") {
        LocalError::Refused { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn u2_what_is_put_is_got_back_whatever_its_size() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    for (object, len) in (0..).zip([0, 1, 10_000, 64 << 10, (64 << 10) + 1, 5 << 20]) {
        store.put(object, len).await;
        store.expect(object, len).await;
    }
    store.local.put(ObjectId(100), vec![7; 100_000].into(), 42, None).await.expect("stored");
    let got = store.local.get(ObjectId(100), None).await.expect("here");
    assert_eq!((got.id(), got.size_bytes(), got.metadata_offset()), (ObjectId(100), 100_000, 42));
}

#[tokio::test]
async fn an_object_can_be_written_in_parts_and_be_got_only_when_it_is_sealed() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let mut draft = store.local.create(ObjectId(1), 100_000).await.expect("room");
    draft.write_at(&[1; 50_000], 50_000).expect("written");
    let early = store.local.get(ObjectId(1), Some(Duration::from_millis(20))).await;
    assert_eq!(code(early), Code::DeadlineExceeded);
    draft.write_at(&[2; 50_000], 0).expect("written");
    assert!(draft.write_at(&[3], 100_000).is_err(), "it ends there");
    draft.seal(9, None).await.expect("sealed");
    assert!(draft.write_at(&[3], 0).is_err(), "it is sealed");
    let got = store.local.get(ObjectId(1), None).await.expect("here").bytes().expect("mapped");
    assert!(got[..50_000].iter().all(|byte| *byte == 2) && got[50_000..].iter().all(|byte| *byte == 1));
}

#[tokio::test]
async fn gets_are_answered_in_the_order_in_which_objects_come() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let mut gets = tokio::task::JoinSet::new();
    for object in 0..3_000 {
        let local = store.local.clone();
        gets.spawn(async move {
            let got = get(&local, object).await.expect("it comes");
            (object, got.bytes().expect("inline"))
        });
    }
    let writer = Connection::open(store.store.socket(), None).await.expect("connected");
    for object in (0..3_000).rev() {
        writer.put(ObjectId(object), pattern(object, 16).into(), 0, None).await.expect("stored");
    }
    while let Some(got) = gets.join_next().await {
        let (object, bytes) = got.expect("no get failed");
        assert_eq!(bytes, pattern(object, 16));
    }
}

#[tokio::test]
async fn many_objects_can_be_held_by_descriptor_at_a_time() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    for object in 0..50 {
        store.put(object, 70_000).await;
    }
    let mut gets = tokio::task::JoinSet::new();
    for number in 0..150 {
        let local = store.local.clone();
        gets.spawn(async move { (number % 50, get(&local, number % 50).await.expect("here")) });
    }
    for (object, got) in gets.join_all().await {
        assert!(got.bytes().expect("mapped") == pattern(object, 70_000));
    }
}

#[tokio::test]
async fn an_object_stays_while_it_is_read_and_its_memory_is_free_when_it_is_dropped() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    store.put(1, 100_000).await;
    let got = store.local.get(ObjectId(1), None).await.expect("here");
    let bytes = got.bytes().expect("mapped").slice(10..20);
    drop(got);
    let order = DeallocateObjectRequest { canonical_objectid: 1, objstoreid: None };
    store.client.deallocate_object(order).await.expect("acknowledged");
    assert_eq!(bytes, pattern(1, 100_000)[10..20]);
    assert!(store.info().await.used_bytes > 0);
    drop(bytes);
    store.until_used(0).await;
}

#[tokio::test]
async fn what_a_process_held_or_was_writing_ends_with_its_connection() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.capacity_bytes = 200 << 10;
    let store = scene.store_with(config).await;
    let other = Connection::open(store.store.socket(), None).await.expect("connected");
    store.put(1, 100_000).await;
    let held = other.get(ObjectId(1), None).await.expect("here");
    let draft = other.create(ObjectId(2), 90_000).await.expect("room");
    let full = store.local.create(ObjectId(3), 90_000).await;
    assert_eq!(code(full), Code::ResourceExhausted);
    assert_eq!(code(store.local.create(ObjectId(2), 1).await), Code::AlreadyExists);
    // Everything that holds the connection.
    drop((held, draft, other));
    let used = 25 * 4096;
    store.until_used(used).await;
    let mut again = store.local.create(ObjectId(2), 90_000).await.expect("room again");
    again.seal(0, None).await.expect("sealed");
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_code() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    assert_eq!(code(store.local.create(ObjectId(1), 65 << 20).await), Code::ResourceExhausted);
    assert_eq!(code(store.local.create(ObjectId(1), u64::MAX).await), Code::ResourceExhausted);
    store.put(1, 10).await;
    assert_eq!(code(store.local.put(ObjectId(1), vec![1].into(), 0, None).await), Code::AlreadyExists);
    assert_eq!(code(store.local.create(ObjectId(1), 10).await), Code::AlreadyExists);
    let order = DeallocateObjectRequest { canonical_objectid: 1, objstoreid: None };
    store.client.deallocate_object(order).await.expect("acknowledged");
    assert_eq!(code(store.local.get(ObjectId(1), None).await), Code::NotFound);
    let mut draft = store.local.create(ObjectId(2), 10).await.expect("room");
    let order = DeallocateObjectRequest { canonical_objectid: 2, objstoreid: None };
    store.client.deallocate_object(order).await.expect("acknowledged");
    assert_eq!(code(draft.seal(0, None).await), Code::NotFound);
}

#[tokio::test]
async fn a_get_that_is_dropped_is_cancelled_and_holds_nothing() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    for _ in 0..200 {
        let dropped =
            tokio::time::timeout(Duration::from_micros(50), store.local.get(ObjectId(1), None)).await;
        assert!(dropped.is_err());
    }
    store.put(1, 100_000).await;
    for _ in 0..200 {
        // Some of these are answered when nobody waits any more.
        _ = tokio::time::timeout(Duration::from_micros(50), store.local.get(ObjectId(1), None)).await;
    }
    let order = DeallocateObjectRequest { canonical_objectid: 1, objstoreid: None };
    store.client.deallocate_object(order).await.expect("acknowledged");
    store.until_used(0).await;
}

#[tokio::test]
async fn objects_spill_when_memory_is_short_and_come_back_for_processes() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.capacity_bytes = 1 << 20;
    config.spill_directory = Some(scene.path("spill"));
    let mut store = scene.store_with(config).await;
    for object in 0..20 {
        store.put(object, 200_000).await;
    }
    let held = store.local.get(ObjectId(19), None).await.expect("here");
    for object in 0..20 {
        store.expect(object, 200_000).await;
    }
    let info = store.info().await;
    assert_eq!(info.objectid, (0..20).collect::<Vec<_>>());
    assert!(info.used_bytes <= info.capacity_bytes && info.spilled_bytes >= 15 * 200_000);
    assert!(held.bytes().expect("mapped") == pattern(19, 200_000));
}
