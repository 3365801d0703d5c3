//! Three nodes agree: elections, proposals and reads on every node, stops, restarts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tripod_raft::{NodeSilence, ProposeError, Role};
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::{Envelope, State};
use tripod_wait::{until, within};

use crate::common::{Cluster, barrier, create_job, each_seed, level_raised, local, once, put, write};

#[test]
fn every_node_takes_proposals_and_every_other_reads_them() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        for writer in 1..=3 {
            let key = format!("from-{writer}");
            let written = write(cluster.node(writer), scope, &key, key.as_bytes()).await;
            for reader in 1..=3 {
                let index = barrier(cluster.node(reader)).await;
                assert!(index >= written, "the barrier gave {index} after a write at {written}");
                let value = local(cluster.node(reader), scope, &key);
                assert_eq!(value.as_deref(), Some(key.as_bytes()), "written on {writer}, read on {reader}");
            }
        }
        for heard in &cluster.heard {
            until("an effect of every command on every node", || {
                (heard.effects.load(Ordering::Relaxed) >= 4).then_some(())
            })
            .await;
        }
        cluster.stop().await;
    });
}

#[test]
fn many_concurrent_proposals_through_a_follower_are_all_applied_once() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let follower = cluster.follower().await;
        let scope = create_job(cluster.node(follower)).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..500_u64 {
            let node = cluster.node(follower).clone();
            calls.spawn(async move { write(&node, scope, &format!("key-{number}"), &[7; 256]).await });
        }
        let mut indexes: Vec<LogIndex> = calls.join_all().await;
        indexes.sort();
        indexes.dedup();
        assert_eq!(indexes.len(), 500, "two commands came back with one index");
        barrier(cluster.node(follower)).await;
        let keys = cluster.node(follower).read(|state| state.jobs()[0].keys);
        assert_eq!(keys, 500);
        cluster.stop().await;
    });
}

#[test]
fn the_others_go_on_when_the_leader_stops_and_nothing_acknowledged_is_lost() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let first = cluster.leader().await;
        let scope = create_job(cluster.node(first)).await;
        for number in 0..50 {
            write(cluster.node(first), scope, &format!("before-{number}"), b"x").await;
        }
        cluster.stop_node(first).await;
        let second = cluster.leader().await;
        assert_ne!(first, second);
        let other = cluster.follower().await;
        write(cluster.node(other), scope, "after", b"y").await;
        for node in [second, other] {
            barrier(cluster.node(node)).await;
            for number in 0..50 {
                assert!(local(cluster.node(node), scope, &format!("before-{number}")).is_some());
            }
        }
        cluster.start_node(first).await.unwrap();
        barrier(cluster.node(first)).await;
        assert_eq!(local(cluster.node(first), scope, "after").as_deref(), Some(b"y".as_slice()));
        cluster.stop().await;
    });
}

#[test]
fn all_nodes_stopped_and_started_again_hold_the_same_state() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let scope = create_job(cluster.node(1)).await;
        for number in 0..20 {
            write(cluster.node(2), scope, &format!("key-{number}"), b"x").await;
        }
        level_raised(&cluster).await;
        barrier(cluster.node(1)).await;
        let digest = cluster.node(1).read(State::digest);
        let term = cluster.node(1).status().term;
        for node in 1..=3 {
            cluster.stop_node(node).await;
        }
        for node in 1..=3 {
            cluster.start_node(node).await.unwrap();
        }
        cluster.leader().await;
        for node in 1..=3 {
            barrier(cluster.node(node)).await;
            assert_eq!(cluster.node(node).read(State::digest), digest, "node {node}");
            assert!(cluster.node(node).status().term > term);
        }
        cluster.stop().await;
    });
}

#[test]
fn leadership_moves_to_the_node_that_is_named() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let target = cluster.follower().await;
        let refused = cluster.node(target).transfer_leadership(None).await.unwrap_err();
        assert!(matches!(refused, ProposeError::NoLeader(_)), "{refused}");
        cluster.node(leader).transfer_leadership(Some(NodeId(target))).await.unwrap();
        assert_eq!(cluster.leader().await, target);
        let status = cluster.node(target).status();
        assert_eq!((status.role, status.leader), (Role::Leader, Some(NodeId(target))));
        assert_eq!(status.members.iter().filter(|member| member.voter).count(), 3);
        cluster.stop().await;
    });
}

#[test]
fn questions_reach_the_leader_from_every_node() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        for node in 1..=3 {
            let answer = cluster.node(node).ask_leader(Bytes::from_static(b"hello")).await.unwrap();
            assert_eq!(answer, format!("node {leader} heard hello"));
        }
        cluster.stop().await;
    });
}

#[test]
fn every_node_answers_for_itself_without_a_quorum_too_and_says_which_silence_it_is() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        cluster.leader().await;
        let ask = async |cluster: &Cluster, asker: u64, node: u64| {
            let (question, patience) = (Bytes::from_static(b"hello"), Duration::from_millis(500));
            cluster.node(asker).ask_node(NodeId(node), question, patience).await
        };
        for (asker, node) in [(1, 1), (1, 2), (2, 3), (3, 1)] {
            assert_eq!(ask(&cluster, asker, node).await, Ok(format!("here node {node} heard hello").into()));
        }
        assert_eq!(ask(&cluster, 1, 9).await, Err(NodeSilence::NoMember));
        cluster.stop_node(2).await;
        cluster.stop_node(3).await;
        assert_eq!(ask(&cluster, 1, 1).await, Ok("here node 1 heard hello".into()));
        let down = ask(&cluster, 1, 2).await.expect_err("it is down");
        assert!(matches!(down, NodeSilence::PortRefuses | NodeSilence::Silent), "{down:?}");
        cluster.stop().await;
    });
}

#[test]
fn without_a_quorum_nothing_is_acknowledged_and_reads_are_refused() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        for node in (1..=3).filter(|node| *node != leader) {
            cluster.stop_node(node).await;
        }
        let node = cluster.node(leader);
        let envelope = Envelope { stamp: None, command: put(scope, "lonely", b"x") };
        let acknowledged = tokio::time::timeout(Duration::from_secs(4), node.propose(envelope)).await;
        assert!(!matches!(acknowledged, Ok(Ok(_))), "{acknowledged:?}");
        let read = within("a refusal", node.read_barrier()).await.unwrap_err();
        assert!(matches!(read, ProposeError::NoLeader(_)), "{read}");
        cluster.stop().await;
    });
}

#[test]
fn a_cluster_of_one_works_alone() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(1).await;
        cluster.leader().await;
        let scope = create_job(cluster.node(1)).await;
        write(cluster.node(1), scope, "key", b"x").await;
        cluster.stop_node(1).await;
        cluster.start_node(1).await.unwrap();
        barrier(cluster.node(1)).await;
        assert!(local(cluster.node(1), scope, "key").is_some());
        cluster.stop().await;
    });
}

#[test]
fn a_stopped_node_says_so() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(1).await;
        cluster.leader().await;
        let node = cluster.node(1).clone();
        cluster.stop().await;
        assert!(matches!(node.read_barrier().await, Err(ProposeError::Stopped(_))));
        assert!(matches!(node.wait_applied(LogIndex(u64::MAX)).await, Err(ProposeError::Stopped(_))));
        assert!(matches!(node.ask_leader(Bytes::new()).await, Err(ProposeError::Stopped(_))));
        node.shutdown().await;
    });
}

#[test]
fn a_value_of_sixteen_mebibytes_is_replicated() {
    once(async || {
        let cluster = Cluster::start(3).await;
        let follower = cluster.follower().await;
        let scope = create_job(cluster.node(follower)).await;
        let value = vec![42; 16 << 20];
        write(cluster.node(follower), scope, "large", &value).await;
        for node in 1..=3 {
            barrier(cluster.node(node)).await;
            assert_eq!(local(cluster.node(node), scope, "large").unwrap(), value);
        }
        cluster.stop().await;
    });
}
