//! What no worker sends. It has an answer, none as upstream, or ends its connection; and changes nothing.

use std::time::Duration;

use tokio::time::timeout;
use tripod_mindspore::wire::rpc0::{BODY_BYTES_MAX, FIELD_BYTES_MAX};

use crate::support::{Cluster, of_2_0};

/// For longer than a frame may take.
const LONG: Duration = Duration::from_secs(60);

fn header(name: u32, to: u32, from: u32, body: u32) -> Vec<u8> {
    [&b"RPC0"[..], &name.to_be_bytes(), &to.to_be_bytes(), &from.to_be_bytes(), &body.to_be_bytes()].concat()
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_frame_ends_its_connection_and_no_other() {
    let cluster = Cluster::of(1).await;
    let mut good = cluster.connect();
    assert!(good.register(&of_2_0("0")).await.success);
    for bad in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"RPC1\0\0\0\0".to_vec(),
        header(FIELD_BYTES_MAX + 1, 1, 1, 1),
        header(1, u32::MAX, 1, 1),
        header(1, 1, 1, BODY_BYTES_MAX + 1),
        // A registration that no protobuf is.
        [header(1, 1, 1, 2), b"0@@\xff\xff".to_vec()].concat(),
    ] {
        let mut client = cluster.connect();
        client.send(&bad).await;
        assert_eq!(client.hear().await, None, "{bad:02x?}");
    }
    assert!(good.beat("0").await.success);
    assert_eq!(cluster.view().registered, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_within_a_frame_is_left_and_one_that_rests_between_two_is_not() {
    let cluster = Cluster::of(1).await;
    let (mut stuck, mut resting) = (cluster.connect(), cluster.connect());
    assert!(resting.register(&of_2_0("0")).await.success);
    stuck.send(&header(1, 1, 1, 1000)).await;
    assert!(timeout(Duration::from_secs(20), stuck.hear()).await.is_err(), "the rest may be on its way");
    assert_eq!(timeout(LONG, stuck.hear()).await, Ok(None));
    tokio::time::sleep(LONG * 60).await;
    assert!(resting.beat("0").await.success);
}

#[tokio::test(start_paused = true)]
async fn messages_without_a_handler_and_beats_of_strangers_are_not_answered_and_end_nothing() {
    let cluster = Cluster::of(1).await;
    let mut client = cluster.connect();
    for name in ["my_message", "3", "4", "10", "12", "99", "", "-1"] {
        client.say(name, "anything").await;
    }
    // A heartbeat of node `9`, which never registered.
    client.say("2", &b"\x0a\x019"[..]).await;
    // A value without a name, and a name that is too long.
    client.write(&"n".repeat(4096), "x").await;
    assert_eq!(client.read("n").await.0, "11");
    assert!(client.register(&of_2_0("0")).await.success, "nothing was said to any of them");
}
