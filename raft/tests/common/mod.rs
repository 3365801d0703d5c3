//! A cluster of several nodes in one process, on loopback.

#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "these are parts of tests: a panic is how they fail")]

pub(crate) mod members;
pub(crate) mod proxy;

use std::future::Future;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tempfile::TempDir;
use tripod_raft::{
    Applied, AskHandler, Handle, Hooks, InitialMember, Options, ProposeError, StartError, Timing,
};
use tripod_state::ids::{DurationMs, JobId, LogIndex, NodeId, ServiceIncarnation};
use tripod_state::{Answer, Command, Envelope, Scope, State, job, kv};

/// How long anything may take before a test gives up: far more than it needs, for a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a node's hooks were told.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) effects: AtomicU64,
    pub(crate) replaced: AtomicU64,
}

struct Echo(NodeId);

impl AskHandler for Echo {
    fn ask(&self, question: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> {
        let answer = format!("node {} heard {}", self.0, String::from_utf8_lossy(&question));
        Box::pin(std::future::ready(Ok(answer.into())))
    }
}

/// Nodes 1 to n. A slot is empty while its node is stopped.
pub(crate) struct Cluster {
    pub(crate) directory: TempDir,
    pub(crate) options: Vec<Options>,
    pub(crate) nodes: Vec<Option<Handle>>,
    pub(crate) heard: Vec<Arc<Heard>>,
}

/// A port that is free, and that the kernel gives to nobody who does not ask for it: it lies below those
/// for outgoing connections and for whoever binds port 0. Processes at the same time begin at other ones.
pub(crate) fn free_port() -> u16 {
    const PORTS: Range<u32> = 8_000..12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(61);
    let candidates = (0..PORTS.end - PORTS.start).map(|_| {
        let step = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        u16::try_from(PORTS.start + step % (PORTS.end - PORTS.start)).unwrap()
    });
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    candidates.into_iter().find(free).expect("one of 4000 ports is free")
}

/// Copies the files of a directory and of those in it.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_directory(&path, &place);
        } else {
            std::fs::copy(&path, &place).unwrap();
        }
    }
}

/// Options of nodes 1 to `count` of one cluster, whose data lies below `directory`.
pub(crate) fn options(directory: &TempDir, count: u64) -> Vec<Options> {
    let initial: Vec<InitialMember> = (1..=count)
        .map(|node| InitialMember { node: NodeId(node), peer: format!("127.0.0.1:{}", free_port()) })
        .collect();
    let of = |member: &InitialMember| Options {
        node: member.node,
        cluster_id: "test-cluster".into(),
        data: directory.path().join(format!("node-{}", member.node)),
        peer_listen: member.peer.clone(),
        initial: initial.clone(),
        // Slower than the default: the tests of this crate share two cores.
        timing: Timing {
            heartbeat: DurationMs(150),
            election_min: DurationMs(800),
            election_max: DurationMs(1600),
        },
        snapshot_every_entries: 100_000,
        keep_entries: 10_000,
    };
    initial.iter().map(of).collect()
}

pub(crate) fn hooks(node: NodeId, heard: &Arc<Heard>) -> Hooks {
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

impl Cluster {
    /// Starts all of `count` nodes.
    pub(crate) async fn start(count: u64) -> Self {
        Self::start_with(count, |_| {}).await
    }

    /// [`Self::start`], with every node's options changed.
    pub(crate) async fn start_with(count: u64, change: impl Fn(&mut Options)) -> Self {
        let directory = TempDir::new().unwrap();
        let mut options = options(&directory, count);
        options.iter_mut().for_each(change);
        let heard = options.iter().map(|_| Arc::default()).collect();
        let mut cluster = Self { directory, nodes: vec![None; options.len()], options, heard };
        for node in 1..=count {
            cluster.start_node(node).await.unwrap();
        }
        cluster
    }

    pub(crate) async fn start_node(&mut self, node: u64) -> Result<(), StartError> {
        let slot = usize::try_from(node - 1).unwrap();
        let options = self.options[slot].clone();
        let handle = Handle::start(options, hooks(NodeId(node), &self.heard[slot])).await?;
        self.nodes[slot] = Some(handle);
        Ok(())
    }

    /// Starts a node with other options in the place of a stopped one, given by its slot.
    pub(crate) async fn start_in(&mut self, slot: usize, options: Options) -> Result<(), StartError> {
        let hooks = hooks(options.node, &self.heard[slot]);
        self.nodes[slot] = Some(Handle::start(options, hooks).await?);
        Ok(())
    }

    pub(crate) async fn stop_node(&mut self, node: u64) {
        let slot = usize::try_from(node - 1).unwrap();
        let handle = self.nodes[slot].take().unwrap();
        handle.shutdown().await;
    }

    pub(crate) async fn stop(mut self) {
        for slot in &mut self.nodes {
            if let Some(handle) = slot.take() {
                handle.shutdown().await;
            }
        }
    }

    pub(crate) fn node(&self, node: u64) -> &Handle {
        self.nodes[usize::try_from(node - 1).unwrap()].as_ref().unwrap()
    }

    pub(crate) fn running(&self) -> Vec<u64> {
        (1..).zip(&self.nodes).filter(|(_, handle)| handle.is_some()).map(|(node, _)| node).collect()
    }

    pub(crate) fn data(&self, node: u64) -> PathBuf {
        self.options[usize::try_from(node - 1).unwrap()].data.clone()
    }

    /// Waits until one of the running nodes leads, is ready, and all of them know.
    pub(crate) async fn leader(&self) -> u64 {
        let found = eventually("a leader that all running nodes know", || {
            let running = self.running();
            let ready = running.iter().find(|node| self.node(**node).leadership().borrow().ready_here)?;
            let known = running
                .iter()
                .all(|node| self.node(*node).leadership().borrow().leader == Some(NodeId(*ready)));
            known.then_some(*ready)
        });
        found.await
    }

    pub(crate) async fn follower(&self) -> u64 {
        let leader = self.leader().await;
        self.running().into_iter().find(|node| *node != leader).unwrap()
    }
}

/// Asks again until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "there was never {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Proposes until a leader takes it. Only for commands that may take effect twice.
pub(crate) async fn propose(node: &Handle, command: &Command) -> Applied {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let envelope = Envelope { stamp: None, command: command.clone() };
        match node.propose(envelope).await {
            Ok(applied) => return applied,
            Err(ProposeError::NoLeader(_) | ProposeError::Unknown(_)) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A read barrier that waits for a leader.
pub(crate) async fn barrier(node: &Handle) -> LogIndex {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match node.read_barrier().await {
            Ok(index) => return index,
            Err(ProposeError::NoLeader(_)) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until the leader has raised the feature level, which it does by an entry of its own a moment after all have
/// started: from then on nobody changes a state that nobody writes to.
pub(crate) async fn level_raised(cluster: &Cluster) {
    let is_newest = |node: u64| cluster.node(node).read(State::level) == tripod_state::level::NEWEST;
    eventually("the newest level on all running nodes", || {
        cluster.running().into_iter().all(is_newest).then_some(())
    })
    .await;
}

/// Checks that nodes which nobody writes to hold the same state. Their leader may still propose something of its own
/// at any time, as when it raises the feature level because the last node is back: states are compared at an equal
/// index only.
pub(crate) async fn assert_same_states(nodes: &[&Handle]) {
    let digests = eventually("the same index on all nodes", || {
        let indexes = || nodes.iter().map(|node| node.applied_index()).collect::<Vec<_>>();
        let before = indexes();
        let digests: Vec<u64> = nodes.iter().map(|node| node.read(State::digest)).collect();
        let same = before == indexes() && before.iter().all(|index| *index == before[0]);
        same.then_some(digests)
    });
    let digests = digests.await;
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
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

/// The value as this node's memory has it.
pub(crate) fn local(node: &Handle, scope: Scope, key: &str) -> Option<Bytes> {
    node.read(|state| state.get(scope, key).ok().map(|entry| entry.value))
}
