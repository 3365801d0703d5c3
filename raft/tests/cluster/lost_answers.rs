//! A forwarded proposal whose answer is lost: the leader has it, and the follower cannot know.

use futures::FutureExt;
use tripod_raft::ProposeError;
use tripod_state::Envelope;
use tripod_state::ids::NodeId;
use tripod_wait::{until, within};

use crate::common::{Cluster, Wire, create_job, each_seed, local, put, write};

#[test]
fn a_proposal_whose_answer_is_lost_is_unknown_and_one_that_was_not_sent_is_not() {
    each_seed(0..10, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let follower = cluster.follower().await;
        let scope = create_job(cluster.node(leader)).await;
        write(cluster.node(follower), scope, "before", b"x").await;

        cluster.wire(leader, Wire::LosesAnswers);
        let node = cluster.node(follower).clone();
        let command = put(scope, "lost answer", b"x");
        let proposed = tokio::spawn(async move { node.propose(Envelope { stamp: None, command }).await });
        until("the proposal on the leader", || local(cluster.node(leader), scope, "lost answer")).await;
        assert!(!proposed.is_finished(), "nobody has told the follower");
        // What comes while a batch is under way waits for its answer. The first poll queues it.
        let envelope = Envelope { stamp: None, command: put(scope, "behind it", b"x") };
        let mut behind = Box::pin(cluster.node(follower).propose(envelope));
        assert!((&mut behind).now_or_never().is_none());
        cluster.wire(leader, Wire::Cut);
        let outcome = within("an outcome", proposed).await.unwrap();
        assert!(matches!(outcome, Err(ProposeError::Unknown(_))), "{outcome:?}");
        let outcome = within("the outcome of what waited", behind).await;
        assert!(matches!(outcome, Err(ProposeError::NoLeader(_))), "{outcome:?}");

        let envelope = Envelope { stamp: None, command: put(scope, "never sent", b"x") };
        let refused = cluster.node(follower).propose(envelope).await;
        assert!(matches!(refused, Err(ProposeError::NoLeader(_))), "{refused:?}");

        cluster.wire(leader, Wire::Whole);
        write(cluster.node(follower), scope, "after", b"x").await;
        let follows = cluster.node(follower);
        for key in ["before", "lost answer", "after"] {
            until(key, || local(follows, scope, key)).await;
        }
        for key in ["behind it", "never sent"] {
            assert_eq!(local(follows, scope, key), None);
        }
        cluster.stop().await;
    });
}

/// Nothing breaks: the leader of then does not answer any more, and another one leads.
#[test]
fn a_proposal_that_a_deposed_leader_has_not_answered_is_unknown() {
    each_seed(0..10, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let follower = cluster.follower().await;
        let heir = (1..=3).find(|node| ![leader, follower].contains(node)).unwrap();
        let scope = create_job(cluster.node(leader)).await;
        write(cluster.node(follower), scope, "before", b"x").await;

        cluster.wire(leader, Wire::LosesAnswers);
        let node = cluster.node(follower).clone();
        let envelope = Envelope { stamp: None, command: put(scope, "lost answer", b"x") };
        let proposed = tokio::spawn(async move { node.propose(envelope).await });
        until("the proposal on the leader", || local(cluster.node(leader), scope, "lost answer")).await;
        cluster.node(leader).transfer_leadership(Some(NodeId(heir))).await.unwrap();
        let outcome = within("an outcome", proposed).await.unwrap();
        assert!(matches!(outcome, Err(ProposeError::Unknown(_))), "{outcome:?}");
        until("what was proposed", || local(cluster.node(follower), scope, "lost answer")).await;
        cluster.stop().await;
    });
}
