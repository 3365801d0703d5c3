//! What nodes say of a leader that they do not hear any more while nobody else can be elected.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use common::proxy::{Proxy, Wire};
use common::{create_job, eventually, local, put, write};
use tripod_raft::{Handle, ProposeError};
use tripod_state::Envelope;

fn names_nobody(node: &Handle) -> bool {
    node.leadership().borrow().leader.is_none() && node.status().leader.is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_not_heard_is_not_named_and_leads_again_when_it_is() {
    let (mut cluster, proxies) = Proxy::before_all(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    let written = write(cluster.node(leader), scope, "before", b"x").await;
    cluster.node(cluster.follower().await).wait_applied(written).await.unwrap();
    for proxy in &proxies {
        proxy.set(Wire::Cut).await;
    }
    eventually("three nodes that name nobody", || {
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
    let named = eventually("what it makes of that", || {
        let now = *cluster.node(follower).leadership().borrow();
        (now.term == known.term).then_some(now.leader)
    });
    assert_eq!(named.await, None);

    for proxy in &proxies {
        proxy.set(Wire::Whole).await;
    }
    cluster.leader().await;
    write(cluster.node(follower), scope, "after", b"x").await;
    assert_eq!(local(cluster.node(leader), scope, "meanwhile"), None);
    cluster.stop().await;
}
