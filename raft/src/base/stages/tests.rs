//! A write's way through the stages, walked by hand.

use bytes::Bytes;
use openraft::LogId;
use tripod_wait::until;

use super::*;
use crate::Handle;
use crate::base::types::LogCommand;
use crate::test_cluster::{Cluster, create_job, each_seed, write};

fn entry(index: u64, payload: &Bytes) -> Entry {
    let leader = openraft::impls::leader_id_adv::LeaderId { term: 1, node_id: 1 };
    let command = LogCommand { now_ms: 0, payload: payload.clone() };
    Entry { log_id: LogId::new(leader, index), payload: EntryPayload::Normal(command) }
}

fn payloads(count: usize) -> Vec<Bytes> {
    (0..count).map(|number| Bytes::from(vec![7; number + 1])).collect()
}

fn counts(stages: &Stages) -> [u64; 6] {
    let StageTimes { queue, append, flush, replicate, apply, reply } = stages.times();
    [queue, append, flush, replicate, apply, reply].map(|times| times.count())
}

/// Takes `payloads`, which get the indexes from `first` on, through everything.
fn pass(stages: &Stages, payloads: &[Bytes], first: u64) {
    let proposing = stages.propose(payloads);
    assert_eq!(stages.proposals(), payloads.len() as u64);
    let entries: Vec<Entry> = (first..).zip(payloads).map(|(index, payload)| entry(index, payload)).collect();
    stages.appended(&entries);
    let group = stages.group();
    stages.flush_began();
    stages.flush_ended();
    stages.durable(group);
    let batch = stages.applying(first, first + payloads.len() as u64 - 1);
    stages.applied(batch);
    proposing.answered();
    assert_eq!(stages.proposals(), 0);
}

#[test]
fn one_of_thirty_two_proposals_is_followed_and_each_group_is_timed() {
    let stages = Stages::default();
    for payload in payloads(31) {
        pass(&stages, &[payload], 1);
    }
    assert_eq!(counts(&stages), [0, 31, 31, 0, 31, 0]);
    pass(&stages, &payloads(1), 32);
    assert_eq!(counts(&stages), [1, 32, 32, 1, 32, 1]);
    pass(&stages, &payloads(100), 33);
    assert_eq!(counts(&stages), [2, 33, 33, 2, 33, 2], "of a crowd one is followed");
}

#[test]
fn one_that_is_given_up_makes_room_for_another_and_counts_for_nothing() {
    let stages = Stages::default();
    let crowd = payloads(32);
    drop(stages.propose(&crowd));
    assert_eq!(stages.proposals(), 0);
    stages.appended(&[entry(5, &crowd[31])]);
    stages.applied(stages.applying(5, 5));
    assert_eq!(counts(&stages)[0], 0);
    pass(&stages, &payloads(32), 6);
    assert_eq!([0, 3, 5].map(|stage| counts(&stages)[stage]), [1, 1, 1]);
}

#[test]
fn only_the_batch_that_holds_the_followed_entry_ends_its_replication() {
    let stages = Stages::default();
    let crowd = payloads(32);
    let proposing = stages.propose(&crowd);
    stages.appended(&[entry(9, &crowd[30]), entry(10, &crowd[31])]);
    stages.applied(stages.applying(1, 9));
    stages.applied(stages.applying(11, 20));
    assert_eq!(counts(&stages)[3], 0);
    stages.applied(stages.applying(10, 10));
    assert_eq!(counts(&stages)[3], 1);
    proposing.answered();
    assert_eq!(counts(&stages)[5], 1);
}

#[test]
fn a_second_followed_proposal_waits_until_the_first_is_answered() {
    let stages = Stages::default();
    let (one, other) = (payloads(32), payloads(32));
    let first = stages.propose(&one);
    let second = stages.propose(&other);
    stages.appended(&[entry(1, &other[31])]);
    assert_eq!(counts(&stages)[0], 0, "the second is not the followed one");
    stages.appended(&[entry(2, &one[31])]);
    assert_eq!(counts(&stages)[0], 1);
    second.answered();
    stages.applied(stages.applying(1, 2));
    first.answered();
    assert_eq!(counts(&stages)[5], 1);
}

#[test]
fn the_oldest_entry_of_a_group_is_the_one_that_is_timed() {
    let stages = Stages::default();
    let crowd = payloads(2);
    stages.appended(&[entry(1, &crowd[0])]);
    std::thread::sleep(Duration::from_millis(20));
    stages.appended(&[entry(2, &crowd[1])]);
    let group = stages.group();
    stages.flush_began();
    assert!(stages.flush_times().under_way.is_some());
    stages.flush_ended();
    stages.durable(group);
    assert!(stages.times().append.sum >= Duration::from_millis(20));
    assert_eq!((stages.flush_times().count, stages.flush_times().under_way), (1, None));

    // A group of votes holds no entry.
    let group = stages.group();
    stages.flush_began();
    stages.flush_ended();
    stages.durable(group);
    assert_eq!(counts(&stages)[1], 1);
}

/// Every stage, in a cluster of real nodes: what a stage begins must come to its end by the same numbers.
#[test]
fn writes_are_timed_on_the_leader_and_groups_on_every_node() {
    each_seed(0..3, async || {
        let cluster = Cluster::start(3).await;
        let scope = create_job(cluster.node(cluster.leader().await)).await;
        let counted = |node: &Handle| {
            let StageTimes { queue, append, flush, replicate, apply, reply } = node.measures().stages;
            [queue, append, flush, replicate, apply, reply].map(|times| times.count())
        };
        // On a crowded machine another may come to lead meanwhile; then it is all done again.
        let (leader, [queue, append, flush, replicate, apply, reply]) = loop {
            let leader = cluster.leader().await;
            let node = cluster.node(leader);
            let (term, before) = (node.status().term, counted(node));
            for number in 0..128 {
                write(node, scope, &format!("k{number}"), b"x").await;
            }
            let after = counted(node);
            if node.status().term == term {
                break (leader, std::array::from_fn(|stage| after[stage] - before[stage]));
            }
        };
        assert!((3..=8).contains(&queue), "{queue} of 128 proposals were followed");
        assert_eq!((replicate, reply), (queue, queue), "a followed proposal got lost");
        assert!(
            append >= 64 && flush >= append && apply >= 64,
            "{append} groups, {flush} flushes, {apply} batches"
        );

        let measures = cluster.node(leader).measures();
        assert_eq!((measures.proposals, measures.forwarding), (0, 0));
        assert!(measures.flush.count > 0 && measures.flush.p99 >= measures.flush.p50, "{:?}", measures.flush);
        assert!(measures.flush.p50.is_some(), "{:?}", measures.flush);
        let heard = until("answers of both followers", || {
            let heard = cluster.node(leader).measures().heard;
            (heard.len() == 2).then_some(heard)
        });
        assert!(heard.await.iter().all(|(node, _)| node.0 != leader));
        assert!(measures.elections.stood >= 1, "whoever leads has stood for election");

        // One that led before has followed proposals.
        let led = |node: u64| cluster.node(node).measures().elections.stood > 0;
        for node in cluster.running().into_iter().filter(|node| *node != leader && !led(*node)) {
            let follower = cluster.node(node);
            let timed = || (counted(follower)[4] > 0).then(|| counted(follower));
            let [queue, append, flush, replicate, _, reply] = until("an applied batch", timed).await;
            assert_eq!([queue, replicate, reply], [0; 3], "node {node} has followed a proposal");
            assert!(append > 0 && flush > 0);
            assert!(follower.measures().heard.is_empty(), "only a leader knows who answers it");
        }
        cluster.stop().await;
    });
}
