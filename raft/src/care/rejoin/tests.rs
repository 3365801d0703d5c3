//! What cannot be told from outside: a node that is looked into, and a newcomer without a node.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tripod_wait::{until, within};

use super::{Asked, Forming, Marker, Newcomer, PeerState};
use crate::base::types::{Peer, Vote};
use crate::disk::journal::SimulatedDisk;
use crate::peers::gate::Gate;
use crate::test_care::{IdleEngine, calls_of, machine, serve_peer};
use crate::test_cluster::network::Exchange;
use crate::test_cluster::{Cluster, create_job, each_seed, once, write_keys};

/// The leader of now has never heard of what the node acknowledged; the one before it has.
#[test]
fn an_older_copy_of_a_directory_is_found_by_a_leader_of_earlier() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let older = cluster.follower().await;
        let third = (1..=3).find(|node| ![leader, older].contains(node)).unwrap();
        cluster.stop_node(older).await;
        let kept = cluster.disk(older).copy();
        cluster.start_node(older).await.unwrap();
        write_keys(cluster.node(leader), scope, 20).await;
        let last = cluster.node(leader).applied_index();
        until("a leader that remembers what the follower has", || {
            let remembered = cluster.node(leader).node().acknowledged().remembered(older);
            (remembered >= Some(last.0)).then_some(())
        })
        .await;
        cluster.stop_node(older).await;
        let third_id = tripod_state::ids::NodeId(third);
        cluster.node(leader).transfer_leadership(Some(third_id)).await.unwrap();
        assert_eq!(cluster.leader().await, third);
        cluster.disk(older).restore(&kept);

        cluster.start_node(older).await.unwrap();
        let told = within("a failure", cluster.node(older).failed()).await;
        assert!(told.starts_with("T3115 data-older: "), "{told}");
        assert!(told.contains(&format!("to node {leader}")), "{told}");
        cluster.stop_node(older).await;

        // What the text says helps.
        cluster.disk(older).wipe();
        cluster.start_node(older).await.unwrap();
        cluster.leader().await;
        cluster.node(older).wait_applied(last).await.unwrap();
        cluster.stop().await;
    });
}

/// Of the nodes of its first start node 2 was replaced by node 4, elsewhere: it cannot ask all voters of now, however often
/// it tries.
#[test]
fn a_wiped_node_that_cannot_find_a_voter_of_now_ends_and_says_what_to_do() {
    once(async || {
        let exchange = Exchange::new();
        let leader = PeerState {
            vote: Vote::new_committed(3, 3),
            leads: true,
            voters: BTreeSet::from([1, 3, 4]),
            ..PeerState::of_a_follower()
        };
        let third = serve_peer(&exchange, 3, leader, &[]).await;
        let places = [(1, exchange.new_address()), (2, exchange.new_address()), (3, third)];
        let marker = Marker::new(SimulatedDisk::new(1).snapshots());
        marker.set().unwrap();
        let (engine, gate) = (IdleEngine::default(), Gate::closed());
        let newcomer = Newcomer {
            calls: calls_of(1, &exchange),
            data: PathBuf::from("data"),
            marker: marker.clone(),
            initial: BTreeMap::from(places.map(|(node, address)| (node, Peer { address }))),
            engine: engine.clone(),
            machine: machine(),
            gate: gate.clone(),
            forming: Forming::default(),
        };
        let asked = newcomer.must_ask(true);
        assert_eq!(asked, Asked::HowToReturn);
        let run = newcomer.run(asked, async || Err("it forms a cluster".to_owned()));
        let told = within("the end of its attempts", run).await.unwrap_err();
        assert!(told.starts_with("T3111 data-lost: ") && told.contains("does not find node 4"), "{told}");
        assert!(told.contains("`tripod member remove 1`") && told.contains("--join"), "{told}");
        assert!(gate.check_entries().is_err() && marker.is_set(), "it takes no part");
        assert_eq!(engine.stood(), [false]);
    });
}
