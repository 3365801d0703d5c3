//! A forwarded proposal whose answer is lost: the leader has it, and the follower cannot know.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use common::proxy::{Proxy, Wire};
use common::{Cluster, PATIENCE, create_job, eventually, free_port, local, put, write};
use futures::FutureExt;
use tripod_raft::{Options, ProposeError};
use tripod_state::Envelope;

/// A cluster whose nodes reach each other through proxies, in the order of their ids.
async fn behind_proxies() -> (Cluster, Vec<Proxy>) {
    // The members keep their addresses, which become those of the proxies.
    let real: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
    let cluster = Cluster::start_with(3, |options: &mut Options| {
        let slot = usize::try_from(options.node.0 - 1).unwrap();
        options.peer_listen.clone_from(&real[slot]);
    })
    .await;
    let mut proxies = Vec::new();
    for (member, target) in cluster.options[0].initial.iter().zip(real) {
        proxies.push(Proxy::start(member.peer.clone(), target).await);
    }
    (cluster, proxies)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_whose_answer_is_lost_is_unknown_and_one_that_was_not_sent_is_not() {
    let (cluster, proxies) = behind_proxies().await;
    let leader = cluster.leader().await;
    let follower = cluster.follower().await;
    let proxy = &proxies[usize::try_from(leader - 1).unwrap()];
    let scope = create_job(cluster.node(leader)).await;
    write(cluster.node(follower), scope, "before", b"x").await;

    proxy.set(Wire::LosesAnswers).await;
    let node = cluster.node(follower).clone();
    let command = put(scope, "lost answer", b"x");
    let proposed = tokio::spawn(async move { node.propose(Envelope { stamp: None, command }).await });
    eventually("the proposal on the leader", || local(cluster.node(leader), scope, "lost answer")).await;
    assert!(!proposed.is_finished(), "nobody has told the follower");
    // What comes while a batch is under way waits for its answer. The first poll queues it.
    let envelope = Envelope { stamp: None, command: put(scope, "behind it", b"x") };
    let mut behind = Box::pin(cluster.node(follower).propose(envelope));
    assert!((&mut behind).now_or_never().is_none());
    proxy.set(Wire::Cut).await;
    let outcome = tokio::time::timeout(PATIENCE, proposed).await.unwrap().unwrap();
    assert!(matches!(outcome, Err(ProposeError::Unknown(_))), "{outcome:?}");
    let outcome = tokio::time::timeout(PATIENCE, behind).await.unwrap();
    assert!(matches!(outcome, Err(ProposeError::NoLeader(_))), "{outcome:?}");

    let envelope = Envelope { stamp: None, command: put(scope, "never sent", b"x") };
    let refused = cluster.node(follower).propose(envelope).await;
    assert!(matches!(refused, Err(ProposeError::NoLeader(_))), "{refused:?}");

    proxy.set(Wire::Whole).await;
    write(cluster.node(follower), scope, "after", b"x").await;
    let follows = cluster.node(follower);
    for key in ["before", "lost answer", "after"] {
        eventually(key, || local(follows, scope, key)).await;
    }
    for key in ["behind it", "never sent"] {
        assert_eq!(local(follows, scope, key), None);
    }
    cluster.stop().await;
}
