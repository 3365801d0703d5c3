//! Starts that must be refused before anything is opened, and a stranger.

use std::sync::Arc;
use std::time::Duration;

use tripod_raft::{Handle, InitialMember, Options, StartError};
use tripod_state::ids::NodeId;

use crate::common::cluster::options;
use crate::common::{Cluster, Ground, barrier, create_job, each_seed_once, hooks, once, write};

async fn refusal(ground: &Ground, options: Options) -> StartError {
    let (world, hooks) = (ground.world(&options), hooks(options.node, &Arc::default()));
    match Handle::start_in(world, options, hooks).await {
        Ok(_) => panic!("the node started"),
        Err(error) => error,
    }
}

#[test]
fn a_timing_that_cannot_work() {
    once(async || {
        let ground = Ground::simulated();
        let mut options = options(&ground, 1).remove(0);
        options.timing.election_max = options.timing.election_min;
        let text = refusal(&ground, options).await.to_string();
        assert!(text.contains("cannot work"), "{text}");
    });
}

#[test]
fn a_list_of_members_that_is_wrong() {
    once(async || {
        let ground = Ground::simulated();
        let good = options(&ground, 2).remove(0);
        let mut twice = good.clone();
        twice.initial[1].node = NodeId(1);
        let text = refusal(&ground, twice).await.to_string();
        assert!(text.contains("node 1 is twice"), "{text}");
        for address in ["localhost", "no port:x", ""] {
            let mut bad = good.clone();
            bad.initial[1].peer = address.into();
            let text = refusal(&ground, bad).await.to_string();
            assert!(text.contains("is not HOST:PORT"), "{text}");
        }
    });
}

/// A node that has the addresses of another cluster's nodes must neither disturb nor join it.
#[test]
fn a_stranger_with_the_right_addresses() {
    each_seed_once(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let term = cluster.node(leader).status().term;
        let ground = cluster.ground.beside();
        let mut stranger = cluster.options[0].clone();
        stranger.cluster_id = "another".into();
        stranger.node = NodeId(4);
        stranger.data = ground.data(stranger.node);
        stranger.peer_listen = ground.new_peer();
        stranger.initial.push(InitialMember { node: NodeId(4), peer: stranger.peer_listen.clone() });
        let (world, hooks) = (ground.world(&stranger), hooks(NodeId(4), &Arc::default()));
        let node = Handle::start_in(world, stranger, hooks).await.unwrap();
        // It asks whether it ever had data, and learns nothing from nodes of another cluster.
        let scope = create_job(cluster.node(leader)).await;
        write(cluster.node(leader), scope, "key", b"x").await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        barrier(cluster.node(leader)).await;
        assert_eq!(cluster.node(leader).status().term, term);
        assert_eq!(node.leadership().borrow().leader, None);
        assert!(node.status().members.is_empty(), "the stranger knows a cluster");
        node.shutdown().await;
        cluster.stop().await;
    });
}
