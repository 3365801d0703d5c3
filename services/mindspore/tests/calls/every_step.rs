//! The whole life of a cluster, in which the leader is lost after one of its steps: after each of them once.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::mindspore::Answer;
use tripod_state::mindspore::cluster::{ClusterState, Request, Scaling};

use crate::failover::{lose_echoes, next_leader};
use crate::played::Played;
use crate::support::Cluster;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A node begins.
    Begin(&'static str),
    /// One registers once more, as scaling asks of it.
    Again(&'static str),
    Event(&'static str, u32),
    ScaleOut,
    ScaleIn(&'static str),
    Done(&'static str, Scaling),
    Finish(&'static str),
}

use Scaling::{In, Out};
use Step::{Again, Begin, Done, Event, Finish, ScaleIn, ScaleOut};

/// A server comes and leaves again, and another one comes: the second scaling out is the one that upstream does not manage.
const LIFE: &[Step] = &[
    Begin("w0"),
    Begin("s0"),
    Event("w0", 1),
    Event("s0", 2),
    ScaleOut,
    Again("w0"),
    Again("s0"),
    Begin("s1"),
    Done("w0", Out),
    Done("s0", Out),
    Done("s1", Out),
    Event("w0", 3),
    ScaleIn("s1"),
    Again("w0"),
    Again("s0"),
    Done("s1", In),
    Done("w0", In),
    Done("s0", In),
    Finish("s1"),
    ScaleOut,
    Begin("s2"),
    Again("s0"),
    Again("w0"),
    Done("s2", Out),
    Done("s0", Out),
    Done("w0", Out),
    Event("s2", 4),
    Finish("w0"),
    Finish("s0"),
    Finish("s2"),
];

/// What a life has come to.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    /// What each node was told, without what it was told once more.
    heard: BTreeMap<&'static str, Vec<String>>,
    ranks: BTreeMap<&'static str, Option<u32>>,
}

/// The leader is lost when it has told what that step asks for, and before any of the answers stands in the log.
async fn lived(lost_after: Option<usize>) -> Told {
    let mut cluster = Cluster::of(1, 1).await;
    let mut nodes = BTreeMap::<&str, (Played, u32)>::new();
    let mut ranks = BTreeMap::new();
    let mut generation = 0;
    for (number, step) in LIFE.iter().enumerate() {
        let is_lost = lost_after == Some(number);
        if is_lost {
            lose_echoes(&cluster);
        }
        match *step {
            Begin(node) => {
                let port = u32::try_from(nodes.len()).unwrap() + 1;
                let played = cluster.start(node).await;
                nodes.insert(node, (played, port));
            }
            Again(node) => cluster.register(node, nodes[node].1).await,
            Event(node, event) => cluster.event(node, event).await,
            ScaleOut => {
                let answer = cluster.ask(Request::ScaleOut { workers: 0, servers: 1 }).await;
                assert!(matches!(answer, Answer::Scaling { .. }), "{answer:?}");
            }
            ScaleIn(node) => {
                let answer = cluster.ask(Request::ScaleIn { nodes: vec![node.to_owned()] }).await;
                assert!(matches!(answer, Answer::Scaling { .. }), "{answer:?}");
            }
            Done(node, scaling) => cluster.done(node, scaling).await,
            Finish(node) => cluster.finish(node).await,
        }
        if is_lost {
            next_leader(&cluster).await;
        }
        cluster.settled().await;
        let state = cluster.backend.state();
        let now = state.cluster_nodes(cluster.scope).unwrap();
        let given = now.iter().filter_map(|node| Some((node.role.word(), node.rank?)));
        assert_eq!(given.clone().collect::<BTreeSet<_>>().len(), given.count(), "no rank twice: {now:?}");
        for node in &now {
            let name = nodes.keys().find(|name| ***name == *node.node.as_str()).unwrap();
            ranks.insert(*name, node.rank);
        }
        let view = cluster.view();
        // The end is the begin of another cluster.
        if view.state != ClusterState::Exit && view.present > 0 {
            assert!(view.generation >= generation, "after {step:?} it has fallen from {generation}");
            generation = view.generation;
        }
    }
    let heard = nodes.into_iter().map(|(node, (played, _))| {
        let mut heard = played.heard();
        heard.dedup();
        (node, heard)
    });
    Told { heard: heard.collect(), ranks }
}

#[tokio::test(start_paused = true)]
async fn whichever_step_the_leader_is_lost_after_all_are_told_the_same_in_the_same_order() {
    let undisturbed = lived(None).await;
    for node in ["w0", "s0", "s2"] {
        assert_eq!(undisturbed.heard[node].last().map(String::as_str), Some("finish"), "{undisturbed:?}");
    }
    let events = |node| {
        let heard: &Vec<String> = &undisturbed.heard[node];
        heard.iter().filter(|words| words.starts_with("event")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(events("w0"), ["event 1", "event 2", "event 3", "event 4"]);
    assert_eq!(events("s1"), ["event 3"]);
    assert_eq!(events("s2"), ["event 4"]);
    assert_eq!(undisturbed.ranks["s0"], Some(0));
    for (number, step) in LIFE.iter().enumerate() {
        assert_eq!(lived(Some(number)).await, undisturbed, "the leader was lost after {step:?}");
    }
}
