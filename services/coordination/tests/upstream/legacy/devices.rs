//! The exchange of device topologies by a call of its own.

use std::sync::Arc;

use super::client::Client;
use super::{Protocol, Stage, with_both};
use crate::client::{Call, topology};
use crate::support::LONG;

#[tokio::test(start_paused = true)]
async fn connect_and_enumerate_devices() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::start(protocol, 2).await;
        let [first, second] = stage.connected().await;
        let [local_first, local_second] = topology::two_nodes();
        // Out of order: nodes are told in the order of their numbers all the same.
        let mut waiting = Call::new(second.enumerate(&local_second));
        waiting.waits().await;
        let seen_by_first = first.enumerate(&local_first).await;
        for (node, seen) in [seen_by_first, waiting.end().await].into_iter().enumerate() {
            let seen = seen.unwrap_or_else(|status| panic!("node {node}: {status:?}"));
            assert_eq!(seen, topology::two_nodes_together(), "node {node}");
        }
        let store = first.set("key1", "value1");
        let (stored, found) = tokio::join!(store, second.get("key1", LONG));
        stored.expect("stored");
        assert_eq!(found.expect("the first one stores it"), "value1");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn enumerate_eleven_devices() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::start(protocol, 11).await;
        let clients: [Arc<Client>; 11] = stage.connected().await;
        let locals = topology::eleven_nodes();
        let calls: Vec<Call<_>> =
            clients.iter().zip(&locals).map(|(client, local)| Call::new(client.enumerate(local))).collect();
        for (node, call) in calls.into_iter().enumerate() {
            let seen = call.end().await.unwrap_or_else(|status| panic!("node {node}: {status:?}"));
            assert_eq!(seen, topology::eleven_nodes_together(), "node {node}");
        }
    })
    .await;
}
