//! What nodes say of a leader that they do not hear any more while nobody else can be elected.

use tripod_raft::{Handle, ProposeError};
use tripod_state::Envelope;
use tripod_wait::until;

use crate::common::{Cluster, Wire, create_job, each_seed, local, put, write};

fn names_nobody(node: &Handle) -> bool {
    node.leadership().borrow().leader.is_none() && node.status().leader.is_none()
}

#[test]
fn a_leader_that_is_not_heard_is_not_named_and_leads_again_when_it_is() {
    each_seed(0..10, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let written = write(cluster.node(leader), scope, "before", b"x").await;
        cluster.node(cluster.follower().await).wait_applied(written).await.unwrap();
        (1..=3).for_each(|node| cluster.wire(node, Wire::Cut));
        until("three nodes that name nobody", || {
            (1..=3).all(|node| names_nobody(cluster.node(node))).then_some(())
        })
        .await;
        for node in 1..=3 {
            let envelope = Envelope { stamp: None, command: put(scope, "meanwhile", b"x") };
            let refused = cluster.node(node).propose(envelope).await;
            assert!(matches!(refused, Err(ProposeError::NoLeader(_))), "{refused:?}");
        }

        // What is on its disk of a leader of earlier is not named either.
        let follower = (1..=3).find(|node| *node != leader).unwrap();
        let known = cluster.node(follower).status();
        cluster.stop_node(follower).await;
        cluster.start_node(follower).await.unwrap();
        assert_eq!(cluster.node(follower).status().last_log, known.last_log, "it has its data");
        let named = until("what it makes of that", || {
            let now = *cluster.node(follower).leadership().borrow();
            (now.term == known.term).then_some(now.leader)
        });
        assert_eq!(named.await, None);

        (1..=3).for_each(|node| cluster.wire(node, Wire::Whole));
        cluster.leader().await;
        write(cluster.node(follower), scope, "after", b"x").await;
        assert_eq!(local(cluster.node(leader), scope, "meanwhile"), None);
        cluster.stop().await;
    });
}
