//! `/ObjStore/*` of one store.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::Code;
use tripod_objstore::local::Connection;
use tripod_objstore::{Error, ObjectId, Store};
use tripod_proto::ray::{
    DeallocateObjectRequest, NotifyAliasRequest, ObjChunk, ObjStoreInfoRequest, StartDeliveryRequest,
    StreamObjToRequest,
};

use crate::support::{Scene, Started, client, pattern};

async fn chunks(store: &mut Started, request: StreamObjToRequest) -> Vec<ObjChunk> {
    let mut stream = store.client.stream_obj_to(request).await.expect("a stream").into_inner();
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.message().await.expect("whole") {
        chunks.push(chunk);
    }
    chunks
}

fn deallocate(object: u64, objstoreid: Option<u64>) -> DeallocateObjectRequest {
    DeallocateObjectRequest { canonical_objectid: object, objstoreid }
}

fn alias(alias: u64, canonical: u64) -> NotifyAliasRequest {
    NotifyAliasRequest { alias_objectid: alias, canonical_objectid: canonical, objstoreid: None }
}

#[tokio::test]
async fn r22_objects_of_all_sizes_are_streamed_in_chunks_of_8_kib_to_who_asks_for_no_other() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    let sizes = [(0, 1), (1, 1), (8191, 1), (8192, 1), (8193, 2), (1 << 20, 128)];
    for (object, (len, count)) in (0..).zip(sizes) {
        store.put(object, len).await;
        let seed = StreamObjToRequest { objectid: object, offset: 0, chunk_bytes: 0 };
        let streamed = chunks(&mut store, seed).await;
        assert_eq!(streamed.len(), count, "{len} bytes");
        assert!(streamed.iter().all(|chunk| chunk.total_size == len as u64 && chunk.data_crc32c.is_none()));
        let bytes: Vec<u8> = streamed.iter().flat_map(|chunk| chunk.data.to_vec()).collect();
        assert!(bytes == pattern(object, len), "{len} bytes");
        let ours = StreamObjToRequest { objectid: object, offset: len as u64 / 2, chunk_bytes: 1 << 20 };
        let [rest] = chunks(&mut store, ours).await.try_into().expect("one chunk");
        assert_eq!(rest.data, pattern(object, len)[len / 2..]);
        assert_eq!(rest.data_crc32c, Some(crc32c::crc32c(&rest.data)));
    }
}

#[tokio::test]
async fn r23_orders_that_come_twice_or_too_late_are_acknowledged_and_ids_are_listed_in_order() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    for object in [9, 0, 5] {
        store.put(object, 10).await;
    }
    for _ in 0..2 {
        store.client.notify_alias(alias(7, 9)).await.expect("acknowledged");
        let fetch =
            StartDeliveryRequest { objstore_address: "127.0.0.1:1".into(), objectid: 5, objstoreid: None };
        store.client.start_delivery(fetch).await.expect("it is here");
    }
    let info = store.info().await;
    assert_eq!((info.objectid, info.obj.len(), info.objstoreid), (vec![0, 5, 7, 9], 0, Some(store.id.0)));
    assert_eq!((info.used_bytes, info.capacity_bytes, info.spilled_bytes), (30, 64 << 20, 0));
    assert_eq!(info.local_socket, store.store.socket().to_string_lossy());
    for object in [9, 9, 1_000_000, u64::MAX] {
        store.client.deallocate_object(deallocate(object, Some(store.id.0))).await.expect("acknowledged");
    }
    assert_eq!(store.info().await.objectid, [0, 5]);
    let gone = store.local.get(ObjectId(7), None).await.expect_err("it ended with its object");
    assert!(gone.to_string().contains("deallocated"), "{gone}");
}

#[tokio::test]
async fn calls_for_another_store_are_refused_and_change_nothing() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    store.put(5, 10).await;
    let other = Some(store.id.0 + 1);
    let fetch =
        StartDeliveryRequest { objstore_address: "127.0.0.1:1".into(), objectid: 6, objstoreid: other };
    let refused = [
        store.client.start_delivery(fetch).await.expect_err("refused"),
        store
            .client
            .notify_alias(NotifyAliasRequest { objstoreid: other, ..alias(7, 5) })
            .await
            .expect_err("refused"),
        store.client.deallocate_object(deallocate(5, other)).await.expect_err("refused"),
    ];
    for status in refused {
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().starts_with("this is object store 0, and the call is for 1"), "{status}");
    }
    assert_eq!(store.info().await.objectid, [5]);
}

#[tokio::test]
async fn what_ended_the_process_of_2016_is_an_error_here() {
    let scene = Scene::new().await;
    let mut store = scene.store().await;
    store.put(5, 10).await;
    let mut code = async |objectid, offset| {
        let request = StreamObjToRequest { objectid, offset, chunk_bytes: 0 };
        store.client.stream_obj_to(request).await.map(drop).map_err(|status| status.code())
    };
    assert_eq!(code(6, 0).await, Err(Code::NotFound));
    assert_eq!(code(5, 11).await, Err(Code::OutOfRange));
    assert_eq!(code(5, 10).await, Ok(()));
    let absent = store.client.notify_alias(alias(7, 6)).await.expect_err("6 is not here");
    assert_eq!(absent.code(), Code::FailedPrecondition);
    store.put(7, 10).await;
    let taken = store.client.notify_alias(alias(7, 5)).await.expect_err("7 is an object");
    assert_eq!(taken.code(), Code::FailedPrecondition);
    let nowhere = StartDeliveryRequest { objectid: 8, ..StartDeliveryRequest::default() };
    assert_eq!(
        store.client.start_delivery(nowhere).await.expect_err("no address").code(),
        Code::InvalidArgument
    );
    store.client.deallocate_object(deallocate(5, None)).await.expect("acknowledged");
    let request = StreamObjToRequest { objectid: 5, ..StreamObjToRequest::default() };
    assert_eq!(store.client.stream_obj_to(request).await.expect_err("gone").code(), Code::NotFound);
    store.expect(7, 10).await;
}

#[tokio::test]
async fn a_store_that_starts_again_is_another_store_without_objects() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.spill_directory = Some(scene.path("spill"));
    config.capacity_bytes = 1 << 20;
    let mut first = scene.store_with(config.clone()).await;
    for object in 0..4 {
        first.put(object, 1 << 19).await;
    }
    assert_eq!(first.info().await.spilled_bytes, 1 << 20);
    let taken = Store::start(config.clone()).await.expect_err("the directory is taken");
    assert!(matches!(taken, Error::SpillDirectoryTaken { .. }), "{taken}");
    // As after a kill: the files stay, the lock does not.
    let keep = scene.path("spill").join("tripod-spilled-999");
    std::fs::write(&keep, b"left behind").expect("written");
    let socket = first.store.socket().to_owned();
    first.store.stop().await.expect("ended");
    let mut second = scene.store_with(config).await;
    assert_ne!(first.id, second.id);
    let info = second.info().await;
    assert_eq!(
        (info.objectid, info.spilled_bytes, keep.exists(), socket.exists()),
        (vec![], 0, false, false)
    );
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_with_what_to_do() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    std::fs::create_dir(scene.path("open")).expect("made");
    std::fs::set_permissions(scene.path("open"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("set");
    config.socket_directory = scene.path("open");
    let refused = Store::start(config).await.expect_err("others may enter").to_string();
    assert!(refused.contains("chmod 700") && refused.contains("--directory"), "{refused}");
    let mut config = scene.config();
    std::os::unix::fs::symlink(&config.socket_directory, scene.path("link")).expect("linked");
    config.socket_directory = scene.path("link");
    let refused = Store::start(config).await.expect_err("a link").to_string();
    assert!(refused.contains("T1402 not-private: ") && refused.contains("is a link"), "{refused}");
    // Also for root, and whatever its mode is.
    if std::os::unix::fs::chown(scene.path("open"), Some(12_345), None).is_ok() {
        std::fs::set_permissions(scene.path("open"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .expect("set");
        let mut config = scene.config();
        config.socket_directory = scene.path("open");
        let refused = Store::start(config).await.expect_err("of another user").to_string();
        assert!(refused.contains("belongs to user 12345"), "{refused}");
    }
    let mut config = scene.config();
    config.listen = scene.listening.address;
    let refused = Store::start(config).await.expect_err("the address is taken").to_string();
    assert!(refused.contains("pick a free address with --listen"), "{refused}");
    let mut config = scene.config();
    config.endpoints = vec!["nowhere".into()];
    let refused = Store::start(config).await.expect_err("no address").to_string();
    assert_eq!(refused, "endpoint `nowhere` has no port; write it as HOST:PORT");
}

#[tokio::test]
async fn the_socket_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new().await;
    let store = scene.store().await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let socket = store.store.socket();
    assert_eq!((mode(socket), mode(socket.parent().expect("a directory"))), (0o600, 0o700));
    let welcome = Connection::open(socket, Some(3)).await.expect("connected").welcome().clone();
    assert_eq!((welcome.store, welcome.address.as_str()), (store.id, store.store.address()));
    assert_eq!((welcome.inline_bytes_max, welcome.capacity_bytes), (64 << 10, 64 << 20));
}

/// The scheduler tells others of a store as soon as it is registered.
#[tokio::test]
async fn who_asks_a_store_that_has_not_heard_of_its_registration_waits_for_that() {
    let scene = Scene::new().await;
    let gate = Arc::new(Semaphore::new(0));
    scene.node.facts.lock().expect("not poisoned").gate = Some(gate.clone());
    let store = Store::start(scene.config()).await.expect("started");
    let address = store.address();
    scene.node.until("a registration", |facts| facts.registered.first().map(|_| ())).await;
    let mut early = client(address).await;
    let asked = tokio::spawn(async move { early.obj_store_info(ObjStoreInfoRequest::default()).await });
    // It is at the store by the time that another call of the same store is answered.
    let refused =
        client(address).await.deallocate_object(deallocate(1, None)).await.expect_err("not registered");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(!asked.is_finished());
    gate.add_permits(1);
    let told = asked.await.expect("no panic").expect("told").into_inner();
    assert_eq!(told.objstoreid, Some(0));
    assert!(!told.local_socket.is_empty());
    store.stop().await.expect("stopped");
}
