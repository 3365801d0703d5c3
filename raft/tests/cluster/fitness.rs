//! Leaders whose disk or whose followers do not answer.

use tripod_raft::ProposeError;
use tripod_state::Envelope;
use tripod_state::ids::NodeId;
use tripod_wait::{until, within};

use crate::common::{Cluster, Wire, create_job, each_seed, local, put, write};

/// A node other than `old` that leads and is ready, as itself and another one see it.
async fn successor(cluster: &Cluster, old: u64) -> u64 {
    let others: Vec<u64> = cluster.running().into_iter().filter(|node| *node != old).collect();
    until("another leader", || {
        let leads = |node: &&u64| cluster.node(**node).leadership().borrow().ready_here;
        let leader = *others.iter().find(leads)?;
        let known = |node: &u64| cluster.node(*node).leadership().borrow().leader == Some(NodeId(leader));
        others.iter().all(known).then_some(leader)
    })
    .await
}

#[test]
fn a_leader_whose_disk_stalls_gives_up_serves_through_its_successor_and_comes_back_as_a_follower() {
    each_seed(0..20, async || {
        let cluster = Cluster::start(3).await;
        let old = cluster.leader().await;
        let node = cluster.node(old).clone();
        let scope = create_job(&node).await;

        cluster.disk(old).hold(true);
        let envelope = Envelope { stamp: None, command: put(scope, "under way", b"x") };
        let under_way = tokio::spawn({
            let node = node.clone();
            async move { node.propose(envelope).await }
        });
        let new = successor(&cluster, old).await;
        assert_eq!(node.status().given_up.disk_stalled, 1);
        until("the successor, as the stalled node hears of it", || {
            (node.leadership().borrow().leader == Some(NodeId(new))).then_some(())
        })
        .await;
        // Its disk still does not answer, and its engine waits for that.
        write(&node, scope, "through the successor", b"x").await;
        let outcome = within("an outcome", under_way).await.unwrap();
        match outcome {
            // The followers have it on their disks, which is a quorum, and said so in time.
            Ok(_) => {
                until("what was under way", || local(cluster.node(new), scope, "under way")).await;
            }
            Err(error) => assert!(matches!(error, ProposeError::Unknown(_)), "{error}"),
        }
        assert!(!node.leadership().borrow().ready_here);
        assert_eq!(local(&node, scope, "through the successor"), None);

        cluster.disk(old).hold(false);
        until("what was written meanwhile", || local(&node, scope, "through the successor")).await;
        write(&node, scope, "after", b"x").await;
        assert_eq!(node.status().given_up.disk_stalled, 1);
        cluster.stop().await;
    });
}

#[test]
fn a_leader_that_hears_no_answers_gives_up_and_lets_the_others_elect() {
    each_seed(0..20, async || {
        let cluster = Cluster::start(3).await;
        let old = cluster.leader().await;
        let node = cluster.node(old).clone();
        let scope = create_job(&node).await;

        cluster.wire_from(old, Wire::LosesAnswers);
        until("a deaf leader that does not lead", || {
            (node.leadership().borrow().leader != Some(NodeId(old))).then_some(())
        })
        .await;
        let new = successor(&cluster, old).await;
        write(cluster.node(new), scope, "without it", b"x").await;
        assert!(node.status().given_up.no_quorum >= 1);

        cluster.wire_from(old, Wire::Whole);
        cluster.leader().await;
        write(&node, scope, "with it", b"x").await;
        until("what was written meanwhile", || local(&node, scope, "without it")).await;
        cluster.stop().await;
    });
}

#[test]
fn a_leader_that_all_others_left_leads_again_when_they_come_back() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let others: Vec<u64> = cluster.running().into_iter().filter(|node| *node != leader).collect();
        for other in &others {
            cluster.stop_node(*other).await;
        }
        // Only this node's log holds it: without this node nobody can be elected.
        let envelope = Envelope { stamp: None, command: put(scope, "alone", b"x") };
        let node = cluster.node(leader).clone();
        let alone = tokio::spawn(async move { node.propose(envelope).await });
        let node = cluster.node(leader).clone();
        until("a leader without a quorum that does not lead", || {
            node.leadership().borrow().leader.is_none().then_some(())
        })
        .await;
        cluster.start_node(others[0]).await.unwrap();
        write(cluster.node(others[0]), scope, "together", b"x").await;
        alone.await.unwrap().ok();
        cluster.stop().await;
    });
}
