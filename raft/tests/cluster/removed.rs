//! How a node learns that it was removed: at once if it was there, and also when nobody is left whom it knows as a
//! member.

use tripod_state::ids::NodeId;
use tripod_state::member::Change;
use tripod_wait::{until, within};

use crate::common::members::{add, done, done_when_caught_up, prepare};
use crate::common::{Cluster, create_job, each_seed, local, write_keys};

/// Removes a node and stops it once it was told.
async fn take_out(cluster: &mut Cluster, node: u64) {
    done(cluster, Change::Remove { node: NodeId(node) }).await;
    within("word of the removal", cluster.node(node).removed()).await;
    cluster.stop_node(node).await;
}

/// Node 3 joined while nodes 1 and 2 were there, and saw node 2 leave. While it was away node 4 took the place of
/// node 1 in the cluster, and node 5 came to the address that was node 2's.
#[test]
fn it_asks_whoever_is_where_members_of_earlier_were() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(2).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        assert_eq!(add(&mut cluster).await, 3);
        take_out(&mut cluster, 2).await;
        // What is committed is written down with what comes after it.
        write_keys(cluster.node(1), scope, 5).await;
        until("a learner that has everything", || local(cluster.node(3), scope, "key-4")).await;
        cluster.stop_node(3).await;
        done(&cluster, Change::Remove { node: NodeId(3) }).await;
        assert_eq!(add(&mut cluster).await, 4);
        done_when_caught_up(&cluster, Change::Promote { node: NodeId(4) }).await;
        take_out(&mut cluster, 1).await;
        prepare(&mut cluster);
        let peer = cluster.options[1].peer_listen.clone();
        cluster.options[4].peer_listen.clone_from(&peer);
        done(&cluster, Change::Add { peer }).await;
        cluster.start_node(5).await.unwrap();
        until("everything on node 5", || local(cluster.node(5), scope, "key-4")).await;

        cluster.start_node(3).await.unwrap();
        let told = within("word of the removal", cluster.node(3).removed()).await;
        assert!(told.starts_with("T4201 node-removed: node 3 "), "{told}");
        cluster.stop().await;
    });
}
