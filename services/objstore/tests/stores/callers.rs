//! Whose orders a store takes, and to whom it gives objects.

use std::net::{IpAddr, Ipv4Addr};

use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_proto::ray::{DeallocateObjectRequest, StartDeliveryRequest, StreamObjToRequest};
use tripod_proto::tripod::v1::RayTellRequest;
use tripod_proto::tripod::v1::ray_peer_client::RayPeerClient;

use crate::peer::{Then, chunk, peer};
use crate::support::{Scene, pattern};

/// Another address of this machine, in the place of another machine.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const LEN: usize = 1000;

async fn from_elsewhere(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.local_address(Some(ELSEWHERE)).connect().await.expect("connected")
}

/// The object that a store has, from its beginning.
fn whole() -> StreamObjToRequest {
    StreamObjToRequest { objectid: 1, offset: 0, chunk_bytes: 1 << 20 }
}

/// With a list that has neither of them, a process of this machine is not taken for one of ours, and the node that the
/// store registered with is known by its address.
#[tokio::test]
async fn a_store_takes_orders_from_nodes_of_its_cluster_and_from_no_stranger() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.order_allow = "10.0.0.0/8".parse().expect("a list");
    let mut store = scene.store_with(config).await;
    store.put(1, LEN).await;
    let source = peer(|_| Ok((vec![chunk(LEN, &pattern(5, LEN))], Then::Ends))).await;

    let channel = from_elsewhere(store.store.address()).await;
    let mut stranger = ObjStoreClient::new(channel.clone());
    let refused = stranger.stream_obj_to(whole()).await.expect_err("it is a stranger");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    for part in ["T6305", "127.0.0.2", "--order-allow"] {
        assert!(refused.message().contains(part), "{part}: {refused}");
    }
    let id = Some(store.id.0);
    let order =
        StartDeliveryRequest { objstore_address: source.address.clone(), objectid: 5, objstoreid: id };
    let refused = stranger.start_delivery(order).await.expect_err("it is a stranger");
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let forget = DeallocateObjectRequest { canonical_objectid: 1, objstoreid: id };
    stranger.deallocate_object(forget).await.expect_err("it is a stranger");
    RayPeerClient::new(channel).tell(RayTellRequest::default()).await.expect_err("it is a stranger");
    assert!(source.asked().is_empty(), "nothing was fetched");
    store.expect(1, LEN).await;

    let at = source.address.clone();
    store.fetch(5, &at).await;
    store.expect(5, LEN).await;
    assert_eq!(source.asked().len(), 1);
}

#[tokio::test]
async fn a_store_gives_objects_to_stores_of_its_cluster_and_takes_no_orders_from_them() {
    let scene = Scene::new().await;
    scene.node.facts.lock().expect("not poisoned").stores = vec!["127.0.0.2:7750".to_owned()];
    let mut config = scene.config();
    config.order_allow = "10.0.0.0/8".parse().expect("a list");
    let store = scene.store_with(config).await;
    store.put(1, LEN).await;
    let mut other = ObjStoreClient::new(from_elsewhere(store.store.address()).await);
    let mut chunks = other.stream_obj_to(whole()).await.expect("it is one of them").into_inner();
    let first = chunks.message().await.expect("sent").expect("a chunk");
    assert!(first.data == pattern(1, LEN));
    let forget = DeallocateObjectRequest { canonical_objectid: 1, objstoreid: None };
    other.deallocate_object(forget).await.expect_err("it is no node");
    store.expect(1, LEN).await;
}

#[tokio::test]
async fn a_store_takes_orders_from_those_that_are_listed() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.order_allow = "127.0.0.2/32".parse().expect("a list");
    let store = scene.store_with(config).await;
    store.put(1, LEN).await;
    let mut listed = ObjStoreClient::new(from_elsewhere(store.store.address()).await);
    let forget = DeallocateObjectRequest { canonical_objectid: 1, objstoreid: None };
    listed.deallocate_object(forget).await.expect("it is listed");
}
