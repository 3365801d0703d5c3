//! Clusters of several nodes in one process, and what tests do with them.
//!
//! | module | what |
//! |---|---|
//! | `cluster` | nodes that are started, stopped and asked |
//! | `ground` | what they stand on: this machine, or a simulation |
//! | `simulation` | one thread, paused time and a seed |
//! | `network`, `trip`, `meter` | connections in memory |
//! | `members` | what an operator does with members |

#![allow(dead_code, unused_imports, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "these are parts of tests: a panic is how they fail")]

pub(crate) mod cluster;
pub(crate) mod ground;
pub(crate) mod members;
pub(crate) mod meter;
pub(crate) mod network;
pub(crate) mod simulation;
mod trip;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tripod_raft::{Applied, AskHandler, Handle, Hooks, ProposeError};
use tripod_state::ids::{JobId, LogIndex, NodeId, ServiceIncarnation};
use tripod_state::{Answer, Command, Envelope, Scope, State, job, kv};
use tripod_wait::{until, until_async};

pub(crate) use cluster::Cluster;
pub(crate) use ground::Ground;
pub(crate) use network::Wire;
pub(crate) use simulation::{each_seed, each_seed_once, once};

/// What a node's hooks were told.
#[derive(Default)]
pub(crate) struct LeaderSigns {
    pub(crate) effects: AtomicU64,
    pub(crate) replaced: AtomicU64,
}

struct Echo(NodeId);

impl AskHandler for Echo {
    fn ask(&self, question: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> {
        let answer = format!("node {} heard {}", self.0, String::from_utf8_lossy(&question));
        Box::pin(std::future::ready(Ok(answer.into())))
    }

    fn ask_here(&self, question: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> {
        let answer = format!("here node {} heard {}", self.0, String::from_utf8_lossy(&question));
        Box::pin(std::future::ready(Ok(answer.into())))
    }
}

pub(crate) fn hooks(node: NodeId, heard: &Arc<LeaderSigns>) -> Hooks {
    let (effects, replaced) = (heard.clone(), heard.clone());
    Hooks {
        effects: Arc::new(move |batch| {
            effects.effects.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }),
        replaced: Arc::new(move || {
            replaced.replaced.fetch_add(1, Ordering::Relaxed);
        }),
        asks: Arc::new(Echo(node)),
    }
}

/// Proposes until a leader takes it. Only for commands that may take effect twice.
pub(crate) async fn propose(node: &Handle, command: &Command) -> Applied {
    until_async("a leader that takes a proposal", || async {
        let envelope = Envelope { stamp: None, command: command.clone() };
        match node.propose(envelope).await {
            Ok(applied) => Some(applied),
            Err(ProposeError::NoLeader(_) | ProposeError::Unknown(_)) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

/// A read barrier that waits for a leader.
pub(crate) async fn barrier(node: &Handle) -> LogIndex {
    until_async("a leader that answers a read", || async {
        match node.read_barrier().await {
            Ok(index) => Some(index),
            Err(ProposeError::NoLeader(_)) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

/// Waits until the leader has raised the feature level, which it does by an entry of its own a moment after all have
/// started: from then on nobody changes a state that nobody writes to.
pub(crate) async fn level_raised(cluster: &Cluster) {
    let is_newest = |node: u64| cluster.node(node).read(State::level) == tripod_state::level::NEWEST;
    until("the newest level on all running nodes", || {
        cluster.running().into_iter().all(is_newest).then_some(())
    })
    .await;
}

/// Checks that nodes which nobody writes to hold the same state. Their leader may still propose something of its own
/// at any time, as when it raises the feature level because the last node is back: states are compared at an equal
/// index only.
pub(crate) async fn assert_same_states(nodes: &[&Handle]) {
    let digests = until("the same index on all nodes", || {
        let indexes = || nodes.iter().map(|node| node.applied_index()).collect::<Vec<_>>();
        let before = indexes();
        let digests: Vec<u64> = nodes.iter().map(|node| node.read(State::digest)).collect();
        let same = before == indexes() && before.iter().all(|index| *index == before[0]);
        same.then_some(digests)
    });
    let digests = digests.await;
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
}

/// Checks that every running node holds so many keys of [`write_keys`], and all of them the same state.
pub(crate) async fn assert_whole(cluster: &Cluster, scope: Scope, keys: u32) {
    let running: Vec<_> = cluster.running().into_iter().map(|node| cluster.node(node)).collect();
    for node in &running {
        barrier(node).await;
        for number in 0..keys {
            let key = format!("key-{number}");
            assert!(local(node, scope, &key).is_some(), "node {} has lost {key}", node.status().node);
        }
    }
    assert_same_states(&running).await;
}

/// A job to keep keys in.
pub(crate) async fn create_job(node: &Handle) -> Scope {
    let command = Command::Job(job::Command::Create {
        name: "job".into(),
        spec: job::Spec::of_tasks(1),
        service: ServiceIncarnation(7),
    });
    let applied = propose(node, &command).await;
    node.wait_applied(applied.index).await.unwrap();
    let job: JobId = node.read(|state| state.job_named("job")).unwrap();
    Scope { job, service: None }
}

pub(crate) fn put(scope: Scope, key: &str, value: &[u8]) -> Command {
    Command::Kv(kv::Command::Insert {
        scope,
        key: key.into(),
        value: Bytes::copy_from_slice(value),
        overwrite: true,
    })
}

/// Writes a key and checks that it was done.
pub(crate) async fn write(node: &Handle, scope: Scope, key: &str, value: &[u8]) -> LogIndex {
    let applied = propose(node, &put(scope, key, value)).await;
    assert!(matches!(applied.reply, Ok(Answer::Done | Answer::Value { .. })), "{:?}", applied.reply);
    applied.index
}

/// Writes so many keys, which are told apart by their number.
pub(crate) async fn write_keys(node: &Handle, scope: Scope, count: u32) {
    for number in 0..count {
        write(node, scope, &format!("key-{number}"), b"x").await;
    }
}

/// The value as this node's memory has it.
pub(crate) fn local(node: &Handle, scope: Scope, key: &str) -> Option<Bytes> {
    node.read(|state| state.get(scope, key).ok().map(|entry| entry.value))
}
