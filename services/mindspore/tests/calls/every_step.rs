//! The whole life of a cluster, in which the leader is lost after one of its steps: after each of them once.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::mindspore::cluster::{ClusterState, Request, Scaling};
use tripod_state::mindspore::{Answer, Decision};

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
    Abort,
    /// The leader finds that one is silent.
    Lose(&'static str),
    Done(&'static str, Scaling),
    Finish(&'static str),
}

use Scaling::{In, Out};
use Step::{Abort, Again, Begin, Done, Event, Finish, Lose, ScaleIn, ScaleOut};

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

/// A server that never comes, one that dies and is replaced, and one that is dead when all others finish.
const TROUBLED_LIFE: &[Step] = &[
    Begin("w0"),
    Begin("s0"),
    Begin("s1"),
    ScaleOut,
    Abort,
    Again("w0"),
    Again("s0"),
    Again("s1"),
    Lose("s1"),
    Begin("s2"),
    Event("s2", 1),
    Lose("s0"),
    Event("w0", 2),
    Finish("w0"),
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
async fn lived(servers: u32, life: &[Step], lost_after: Option<usize>) -> Told {
    let mut cluster = Cluster::of(1, servers).await;
    let mut nodes = BTreeMap::<&str, (Played, u32)>::new();
    let mut ranks = BTreeMap::new();
    let mut generation = 0;
    for (number, step) in life.iter().enumerate() {
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
            Abort => assert_eq!(cluster.ask(Request::Abort).await, Answer::Noted),
            Lose(node) => {
                let lost = cluster.node(node);
                cluster
                    .decide(Decision::ClusterSilent { nodes: vec![(lost.member, lost.incarnation)] })
                    .await;
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
    let undisturbed = lived(1, LIFE, None).await;
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
        assert_eq!(lived(1, LIFE, Some(number)).await, undisturbed, "the leader was lost after {step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whichever_step_of_a_troubled_life_the_leader_is_lost_after_all_are_told_the_same() {
    let undisturbed = lived(2, TROUBLED_LIFE, None).await;
    let words = |node: &str, word: &str| {
        let heard: &Vec<String> = &undisturbed.heard[node];
        heard.iter().filter(|words| words.starts_with(word)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(words("s1", "scale-out"), ["scale-out 1+3"]);
    assert_eq!((undisturbed.ranks["s1"], undisturbed.ranks["s2"]), (Some(1), Some(1)), "it took its place");
    assert_eq!(words("w0", "event"), ["event 1", "event 2"]);
    assert_eq!(words("s0", "event"), ["event 1"]);
    assert_eq!(words("s1", "event"), [""; 0]);
    for (node, finishes) in [("w0", 1), ("s2", 1), ("s0", 0), ("s1", 0)] {
        assert_eq!(words(node, "finish").len(), finishes, "{undisturbed:?}");
    }
    for (number, step) in TROUBLED_LIFE.iter().enumerate() {
        let told = lived(2, TROUBLED_LIFE, Some(number)).await;
        assert_eq!(told, undisturbed, "the leader was lost after {step:?}");
    }
}
