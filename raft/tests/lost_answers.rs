//! A forwarded proposal whose answer is lost: the leader has it, and the follower cannot know.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use common::proxy::{Proxy, Wire};
use common::{PATIENCE, create_job, eventually, local, put, write};
use futures::FutureExt;
use tripod_raft::ProposeError;
use tripod_state::Envelope;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_whose_answer_is_lost_is_unknown_and_one_that_was_not_sent_is_not() {
    let (cluster, proxies) = Proxy::before_all(3).await;
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
