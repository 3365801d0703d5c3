//! A cluster from its first registration until its job is used again.

use bytes::Bytes;
use prost::Message as _;
use tripod_proto::mindspore::topology::{NodePortRanges, RegistrationMessage};

use crate::support::{Client, Cluster, of_2_0, of_2_10};

/// A worker: it has two connections, and the second one says nothing of who it is.
struct Worker {
    node: &'static str,
    control: Client,
    metadata: Client,
}

impl Worker {
    fn of(cluster: &Cluster, node: &'static str) -> Self {
        Self { node, control: cluster.connect(), metadata: cluster.connect() }
    }

    async fn rank(&mut self) -> String {
        let (valid, rank) = self.metadata.read(&format!("MS_WORKER{}", self.node)).await;
        assert_eq!(valid, "11");
        String::from_utf8(rank.to_vec()).unwrap()
    }
}

fn told(name: &str, body: &'static str) -> (String, Bytes) {
    (name.to_owned(), Bytes::from_static(body.as_bytes()))
}

#[tokio::test(start_paused = true)]
async fn two_workers_find_their_ranks_and_each_other_and_leave_and_their_job_is_used_again() {
    let cluster = Cluster::of(2).await;
    let (mut one, mut two) = (Worker::of(&cluster, "uuid-b"), Worker::of(&cluster, "uuid-a"));
    let first = one.control.register(&of_2_10(one.node)).await;
    assert_eq!((first.success, first.rank_id, first.node_num), (true, 0, 2), "the likely rank");
    let beat = one.control.beat(one.node).await;
    assert_eq!((beat.success, beat.topo_state, beat.nodes_num, beat.abnormal_nodes_num), (true, 0, 2, 0));
    assert_eq!(one.metadata.ask("9", "MS_WORKER").await, told("12", r#"{"hostnames":[]}"#), "incomplete");
    assert_eq!(one.control.unregister(one.node).await, "5", "not before all are there");
    two.control.register(&RegistrationMessage { host_name: "vm2".into(), ..of_2_10(two.node) }).await;
    assert_eq!(one.control.beat(one.node).await.topo_state, 1);
    assert_eq!((one.rank().await.as_str(), two.rank().await.as_str()), ("1", "0"), "by address and id");
    let names = one.metadata.ask("9", "MS_WORKER").await;
    assert_eq!(names, told("11", r#"{"hostnames":["vm2","vm"]}"#), "by rank");
    let (valid, ports) = two.metadata.read("node_port_range").await;
    assert_eq!((valid.as_str(), NodePortRanges::decode(ports).unwrap().data.len()), ("11", 2));

    one.metadata.write("START_EXCHANGE_META_x", "1").await;
    assert_eq!(one.metadata.read("START_EXCHANGE_META_x").await.0, "11", "it was written before it was read");
    assert_eq!(two.metadata.read("START_EXCHANGE_META_x").await, told("11", "1"));
    assert_eq!(two.metadata.delete("START_EXCHANGE_META_x").await, "11");
    assert_eq!(one.metadata.delete("START_EXCHANGE_META_x").await, "12", "there is none any more");

    assert_eq!(two.control.unregister("uuid-c").await, "4", "nobody of that id");
    assert_eq!(
        (one.control.unregister(one.node).await.as_str(), two.control.unregister(two.node).await.as_str()),
        ("3", "3")
    );
    two.metadata.write("left", "over").await;
    assert_eq!(two.metadata.read("left").await, told("11", "over"));
    let again = one.control.register(&of_2_10(one.node)).await;
    assert_eq!((again.success, again.rank_id), (true, 0));
    assert_eq!(one.metadata.read("left").await.0, "12", "a new cluster knows nothing of the one before");
}

#[tokio::test(start_paused = true)]
async fn a_node_for_whom_there_is_no_place_or_no_role_is_told_why_and_leaves_nothing() {
    let cluster = Cluster::of(1).await;
    let mut client = cluster.connect();
    assert!(client.register(&of_2_0("0")).await.success);
    for (refused, word) in [
        (of_2_0("1"), "places"),
        (RegistrationMessage { role: "MS_SCHED".into(), ..of_2_0("2") }, "MS_SCHED"),
        (of_2_0(&"x".repeat(101)), "100"),
    ] {
        let told = client.register(&refused).await;
        assert!(!told.success && told.error_reason.contains(word), "{told:?}");
    }
    assert_eq!(cluster.view().registered, 1);
    let again = client.register(&of_2_0("0")).await;
    assert_eq!((again.success, again.rank_id), (true, 0), "a known node keeps its rank");
}
