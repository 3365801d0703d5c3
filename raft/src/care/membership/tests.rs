//! Changes that are brought about whatever became of the one who asked for them, or of the leader who began.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::EntryPayload;
use openraft::async_runtime::WatchReceiver as _;
use tripod_state::ids::NodeId;
use tripod_state::member::{self, Change, Ending};
use tripod_state::{Command, Envelope};
use tripod_wait::until;

use super::{MembersAnswer, MembersRequest};
use crate::apply::cluster_configuration::ClusterConfiguration;
use crate::base::types::Peer;
use crate::handle::Handle;
use crate::test_cluster::{Cluster, each_seed};

fn configuration(node: &Handle) -> ClusterConfiguration {
    let metrics = node.node().raft().metrics();
    let metrics = metrics.borrow_watched();
    ClusterConfiguration::of(metrics.membership_config.membership())
}

/// Begins a change as if whoever asked for it was not there any more when it was applied.
async fn begin_past_the_handler(leader: &Handle, change: Change) {
    let begin = member::Command::Begin { change, by: "test".to_owned() };
    let envelope = Envelope { stamp: None, command: Command::Member(begin) };
    leader.propose(envelope).await.unwrap().reply.unwrap();
}

/// How the last change ended, as a node knows it.
async fn ending(node: &Handle) -> Ending {
    let ended = || node.read(|state| state.registry().last().map(|last| last.ending.clone()));
    until("its end", ended).await
}

/// Makes the first entry of a change that takes `leaving` out, and not the second.
async fn enter_both_sets(leader: &Handle, leaving: u64) {
    let before = configuration(leader);
    let old = before.voters();
    let new: BTreeSet<u64> = old.iter().copied().filter(|node| *node != leaving).collect();
    let nodes: BTreeMap<u64, Peer> =
        before.nodes.into_iter().map(|(node, address)| (node, Peer { address })).collect();
    let both = openraft::Membership::new(vec![old, new], nodes).unwrap();
    leader.node().raft().append_membership(both, EntryPayload::Blank, []).await.unwrap();
    assert!(configuration(leader).is_joint());
}

/// Gives the members that all nodes but `leaving` agree on when another leader has gone on.
async fn left_by_the_next_leader(cluster: &mut Cluster, leaving: u64) -> ClusterConfiguration {
    let leader = cluster.leader().await;
    cluster.stop_node(leader).await;
    cluster.start_node(leader).await.unwrap();
    until("one set of voters", || {
        let others = (1..=3).filter(|node| *node != leaving);
        let configurations: Vec<ClusterConfiguration> =
            others.map(|node| configuration(cluster.node(node))).collect();
        (!configurations[0].is_joint()
            && configurations[0] == configurations[1]
            && !configurations[0].sets.is_empty())
        .then(|| configurations[0].clone())
    })
    .await
}

#[test]
fn the_next_leader_finishes_what_was_begun_and_knows_what_it_was() {
    each_seed(0..5, async || {
        for stays in [false, true] {
            let mut cluster = Cluster::start(3).await;
            let leader = cluster.leader().await;
            let leaving = cluster.follower().await;
            cluster.node(leader).node().idle_members();
            let node = NodeId(leaving);
            let change = if stays { Change::Demote { node } } else { Change::Remove { node } };
            begin_past_the_handler(cluster.node(leader), change).await;
            enter_both_sets(cluster.node(leader), leaving).await;

            let left = left_by_the_next_leader(&mut cluster, leaving).await;
            assert_eq!(left.voters().len(), 2);
            assert_eq!(left.contains(leaving), stays, "a demoted node stays, a removed one does not");
            let stayed = (1..=3).find(|node| *node != leaving).unwrap();
            assert_eq!(ending(cluster.node(stayed)).await, Ending::Done);
            cluster.stop().await;
        }
    });
}

/// A leader that had proposed the beginning of a change, lost its office, and got it back in the same term had nobody
/// left who told its driver that the change was applied: it rested for ever.
#[test]
fn a_change_that_nobody_waits_for_is_brought_about() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let leaving = cluster.follower().await;
        begin_past_the_handler(cluster.node(leader), Change::Remove { node: NodeId(leaving) }).await;
        assert_eq!(ending(cluster.node(leader)).await, Ending::Done);
        assert!(!configuration(cluster.node(leader)).contains(leaving));
        cluster.stop().await;
    });
}

#[test]
fn two_sets_of_voters_that_no_change_explains_become_one() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let leaving = cluster.follower().await;
        enter_both_sets(cluster.node(leader), leaving).await;
        let left = left_by_the_next_leader(&mut cluster, leaving).await;
        assert!(left.voters().len() == 2 && left.contains(leaving), "{left:?}");
        cluster.stop().await;
    });
}

/// The order in which a node is started and the members are changed does not matter.
#[test]
fn a_change_waits_for_a_node_that_is_arriving() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.node(cluster.leader().await);
        leader.node().idle_members();
        let join = member::Command::Join { peer: cluster.ground.new_peer(), token: 7 };
        let envelope = Envelope { stamp: None, command: Command::Member(join) };
        leader.propose(envelope).await.unwrap().reply.unwrap();
        let open = leader.read(|state| state.registry().open().cloned()).unwrap();
        assert!(open.is_arrival(), "{open:?}");

        let demote = Change::Demote { node: NodeId(cluster.follower().await) };
        let wanted = MembersRequest::Change { change: demote, by: "test".into(), plan: true, force: false };
        let asked = leader.members(wanted);
        let ended = async {
            // It has been refused by then, unless it waits.
            let again = Change::Promote { node: NodeId(9) };
            let again = MembersRequest::Change { change: again, by: "test".into(), plan: true, force: false };
            let waits = tokio::time::timeout(Duration::from_millis(200), leader.members(again)).await;
            assert!(waits.is_err(), "{waits:?}");
            let end = member::Command::End { change: open.id, ending: Ending::Done };
            let envelope = Envelope { stamp: None, command: Command::Member(end) };
            leader.propose(envelope).await.unwrap().reply.unwrap();
        };
        let (planned, ()) = tokio::join!(asked, ended);
        assert!(matches!(planned, Ok(MembersAnswer::Change(_))), "{planned:?}");
        cluster.stop().await;
    });
}
