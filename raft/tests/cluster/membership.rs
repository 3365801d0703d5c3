//! Members come, go and change places while the cluster runs.

use tripod_raft::{ChangeError, MembersAnswer, MembersRequest, Unwise};
use tripod_state::ids::NodeId;
use tripod_state::level::NEWEST;
use tripod_state::member::{Change, Ending, Refusal};
use tripod_state::{Fault, Scope, State};
use tripod_wait::within;

use crate::common::members::{
    add, announcement, ask, begin, done, done_when_caught_up, ended, list, prepare, request, voters,
};
use crate::common::{Cluster, assert_whole, create_job, each_seed, propose, write, write_keys};

const KEYS: u32 = 50;

async fn filled(count: u64) -> (Cluster, Scope) {
    let cluster = Cluster::start_with(count, |options| {
        // Members that come later get a snapshot and what follows it.
        options.snapshot_every_entries = 30;
        options.keep_entries = 5;
    })
    .await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    write_keys(cluster.node(leader), scope, KEYS).await;
    (cluster, scope)
}

#[test]
fn three_become_five_and_three_again_without_the_first_leader() {
    each_seed(0..5, async || {
        let (mut cluster, scope) = filled(3).await;
        for expected in [4, 5] {
            let node = add(&mut cluster).await;
            let planned = done_when_caught_up(&cluster, Change::Promote { node: NodeId(node) }).await;
            assert_eq!(node, expected);
            assert_eq!(planned.after.voters.len() as u64, expected);
            assert_eq!(
                (planned.before.quorum(), planned.after.quorum() as u64),
                (if node == 4 { 2 } else { 3 }, 3)
            );
        }
        assert_eq!(voters(&cluster).await, [1, 2, 3, 4, 5]);
        assert_whole(&cluster, scope, KEYS).await;
        let leader = cluster.leader().await;
        let other = (1..=3).find(|node| *node != leader).unwrap();
        for node in [leader, other] {
            done(&cluster, Change::Remove { node: NodeId(node) }).await;
            let told = within("word of the removal", cluster.node(node).removed()).await;
            assert!(told.starts_with("T4201 node-removed: ") && told.contains("--join"), "{told}");
            cluster.stop_node(node).await;
        }
        let left = voters(&cluster).await;
        assert!(left.len() == 3 && !left.contains(&leader) && !left.contains(&other), "{left:?}");
        write(cluster.node(4), scope, "after", b"y").await;
        assert_whole(&cluster, scope, KEYS).await;

        // It does not come back, whoever starts it again, and the next node gets another id.
        cluster.start_node(leader).await.unwrap();
        let told = within("word of the removal", cluster.node(leader).removed()).await;
        assert!(told.contains(&format!("node {leader} ")), "{told}");
        cluster.stop_node(leader).await;
        let again = begin(&cluster, Change::Promote { node: NodeId(leader) }).await.unwrap_err();
        let removed = Refusal::NodeRemoved { node: NodeId(leader) };
        assert_eq!(again, ChangeError::Refused(Fault::Member(removed)));
        assert_eq!(add(&mut cluster).await, 6);
        cluster.stop().await;
    });
}

#[test]
fn a_removed_node_whose_data_are_gone_is_refused_under_its_old_id() {
    each_seed(0..5, async || {
        let (mut cluster, _scope) = filled(3).await;
        let removed = cluster.follower().await;
        cluster.stop_node(removed).await;
        done(&cluster, Change::Remove { node: NodeId(removed) }).await;
        cluster.disk(removed).wipe();
        // With its old list of voters, as an operator might who does not know.
        cluster.start_node(removed).await.unwrap();
        let told = within("word of the removal", cluster.node(removed).removed()).await;
        assert!(told.starts_with("T4201 node-removed: "), "{told}");
        cluster.stop().await;
    });
}

#[test]
fn what_is_unwise_is_refused_and_nothing_has_changed() {
    each_seed(0..5, async || {
        let (mut cluster, _scope) = filled(3).await;
        let leader = cluster.leader().await;
        let [one, two] = {
            let mut followers = (1..=3).filter(|node| *node != leader);
            [followers.next().unwrap(), followers.next().unwrap()]
        };
        let follower =
            cluster.node(one).members(request(Change::Demote { node: NodeId(two) }, false, false)).await;
        assert!(matches!(follower, Err(ChangeError::NotLeader { .. })), "{follower:?}");
        let unknown = begin(&cluster, Change::Promote { node: NodeId(9) }).await.unwrap_err();
        assert_eq!(unknown, ChangeError::Refused(Fault::Member(Refusal::NodeUnknown { node: NodeId(9) })));
        let nowhere = begin(&cluster, Change::Add { peer: "nowhere".to_owned() }).await.unwrap_err();
        assert!(matches!(nowhere, ChangeError::Unwise(Unwise::Address(_))), "{nowhere:?}");
        let beside = cluster.ground.beside();
        let theirs = Cluster::start_on(beside, 1, |options| options.cluster_id = "theirs".to_owned()).await;
        let peer = theirs.options[0].peer_listen.clone();
        let wrong = begin(&cluster, Change::Add { peer }).await.unwrap_err();
        let ChangeError::Unwise(Unwise::Stranger { reason, .. }) = &wrong else { panic!("{wrong:?}") };
        assert!(reason.contains("theirs"), "{reason}");
        theirs.stop().await;
        let voter = begin(&cluster, Change::Promote { node: NodeId(one) }).await.unwrap_err();
        assert_eq!(voter, ChangeError::Unwise(Unwise::Voter { node: NodeId(one) }));

        // A learner that was never started cannot vote.
        let peer = prepare(&mut cluster);
        done(&cluster, Change::Add { peer }).await;
        let silent = begin(&cluster, Change::Promote { node: NodeId(4) }).await.unwrap_err();
        assert_eq!(silent, ChangeError::Unwise(Unwise::Silent { node: NodeId(4) }));

        cluster.stop_node(one).await;
        let lost = begin(&cluster, Change::Remove { node: NodeId(two) }).await.unwrap_err();
        let ChangeError::Unwise(Unwise::QuorumLost { after }) = &lost else { panic!("{lost:?}") };
        assert_eq!((after.quorum(), after.answering(), after.silent()), (2, 1, &[NodeId(one)][..]));
        let planned =
            ask(&cluster, &request(Change::Remove { node: NodeId(one) }, true, false)).await.unwrap();
        let MembersAnswer::Change(planned) = planned else { panic!("{planned:?}") };
        assert_eq!((planned.change, planned.after.voters.len()), (None, 2));
        assert_eq!(voters(&cluster).await, [1, 2, 3], "nothing has changed");
        cluster.stop().await;
    });
}

#[test]
fn a_dead_voter_is_replaced_by_a_change_that_outlives_leaders() {
    each_seed(0..5, async || {
        let (mut cluster, scope) = filled(3).await;
        let old = cluster.follower().await;
        cluster.stop_node(old).await;
        let peer = prepare(&mut cluster);
        let replace = Change::Replace { old: NodeId(old), peer };
        let planned = begin(&cluster, replace.clone()).await.unwrap();
        assert_eq!((planned.node, planned.before.quorum(), planned.after.quorum()), (NodeId(4), 2, 2));
        let change = planned.change.unwrap();

        // The new one has not come, so nothing goes on, and nobody else may change anything.
        let other = begin(&cluster, Change::Add { peer: cluster.ground.new_peer() }).await.unwrap_err();
        let ChangeError::Refused(Fault::Member(Refusal::InProgress { open })) = &other else {
            panic!("{other:?}")
        };
        assert_eq!((open.by.as_str(), &open.change), ("test", &replace));
        let again = begin(&cluster, replace.clone()).await.unwrap();
        assert_eq!(again.change, Some(change), "a second command resumes");

        // The leader goes and comes back; whoever leads then goes on.
        let leader = cluster.leader().await;
        cluster.stop_node(leader).await;
        cluster.start_node(leader).await.unwrap();
        let leader = cluster.leader().await;
        assert_eq!(list(cluster.node(leader)).await.votes.voters.len(), 3, "the quorum has not grown");
        cluster.start_node(4).await.unwrap();
        assert_eq!(ended(&cluster, change).await, Ending::Done);
        let mut left: Vec<u64> = (1..=4).filter(|node| *node != old).collect();
        left.sort_unstable();
        assert_eq!(voters(&cluster).await, left);
        write(cluster.node(4), scope, "after", b"y").await;
        assert_whole(&cluster, scope, KEYS).await;
        cluster.stop().await;
    });
}

#[test]
fn a_change_that_waits_can_be_given_up() {
    each_seed(0..5, async || {
        let (mut cluster, _scope) = filled(3).await;
        let peer = prepare(&mut cluster);
        let planned = begin(&cluster, Change::Replace { old: NodeId(1), peer: peer.clone() }).await.unwrap();
        let change = planned.change.unwrap();
        ask(&cluster, &MembersRequest::Cancel { change }).await.unwrap();
        assert_eq!(ended(&cluster, change).await, Ending::Cancelled);
        assert_eq!(voters(&cluster).await, [1, 2, 3]);
        let again = ask(&cluster, &MembersRequest::Cancel { change }).await.unwrap_err();
        assert_eq!(again, ChangeError::Refused(Fault::Member(Refusal::NotOpen { change })));
        cluster.stop().await;
    });
}

#[test]
fn a_node_that_joins_by_itself_gets_an_id_and_the_log() {
    each_seed(0..5, async || {
        let (mut cluster, scope) = filled(1).await;
        let peer = prepare(&mut cluster);
        let join = MembersRequest::Join { peer, token: 7, supports: NEWEST };
        let first = ask(&cluster, &join).await.unwrap();
        let expected = MembersAnswer::Join { cluster_id: "test-cluster".to_owned(), node: NodeId(2) };
        assert_eq!(first, expected);
        assert_eq!(ask(&cluster, &join).await.unwrap(), expected, "its first answer may be lost");
        cluster.start_node(2).await.unwrap();
        done_when_caught_up(&cluster, Change::Promote { node: NodeId(2) }).await;
        let lost = ask(&cluster, &join).await.unwrap_err();
        assert_eq!(lost, ChangeError::Refused(Fault::Member(Refusal::HadData { node: NodeId(2) })));
        assert_whole(&cluster, scope, KEYS).await;
        // Both are needed now; then the first one goes, and the second is the cluster.
        let leader = cluster.leader().await;
        done(&cluster, Change::Remove { node: NodeId(1) }).await;
        within("word of the removal", cluster.node(1).removed()).await;
        cluster.stop_node(1).await;
        assert_eq!(voters(&cluster).await, [2], "the leader was {leader}");
        write(cluster.node(2), scope, "after", b"y").await;
        cluster.stop().await;
    });
}

#[test]
fn a_node_is_called_where_it_was_moved_to() {
    each_seed(0..5, async || {
        let (mut cluster, scope) = filled(3).await;
        let moved = cluster.follower().await;
        cluster.stop_node(moved).await;
        let peer = cluster.ground.new_peer();
        let slot = usize::try_from(moved - 1).unwrap();
        cluster.options[slot].peer_listen.clone_from(&peer);
        done(&cluster, Change::Move { node: NodeId(moved), peer: peer.clone() }).await;
        // Whoever starts with the old list knows better from the log.
        let listed = cluster.options[slot].initial.iter().find(|member| member.node.0 == moved).unwrap();
        assert_ne!(listed.peer, peer);
        cluster.start_node(moved).await.unwrap();
        cluster.leader().await;
        write(cluster.node(moved), scope, "after", b"y").await;
        assert_whole(&cluster, scope, KEYS).await;
        // It is needed for everything now.
        let other = (1..=3).find(|node| *node != moved).unwrap();
        cluster.stop_node(other).await;
        cluster.leader().await;
        write(cluster.node(moved), scope, "needed", b"y").await;
        cluster.stop().await;
    });
}

#[test]
fn the_addresses_of_a_removed_node_are_told_to_nobody_any_more() {
    each_seed(0..5, async || {
        let (mut cluster, _scope) = filled(3).await;
        let leader = cluster.leader().await;
        for node in 1..=3 {
            propose(cluster.node(leader), &announcement(node)).await;
        }
        let removed = cluster.follower().await;
        done(&cluster, Change::Remove { node: NodeId(removed) }).await;
        cluster.stop_node(removed).await;
        let known = cluster.node(leader).read(State::members);
        assert!(known.len() == 2 && known.iter().all(|(node, _)| node.0 != removed), "{known:?}");
        cluster.stop().await;
    });
}
