//! Whole nodes in a world that is brought along: one thread, paused time, connections and disks in memory.
//! The same seed gives the same run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{barrier, create_job, eventually, local, put, write};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tripod_raft::{
    BoxFuture, Chance, Handle, InitialMember, Listener, LogLine, Network, Observer, Options, SimulatedDisk,
    Stream, Timing, World,
};
use tripod_state::ids::{LogIndex, NodeId, TimeMs};
use tripod_state::{Envelope, State};

/// Bytes under way in one direction of a connection.
const LINE_BYTES: usize = 64 << 10;

/// Who listens, by address.
#[derive(Clone, Default)]
struct Exchange {
    doors: Arc<Mutex<BTreeMap<String, mpsc::UnboundedSender<DuplexStream>>>>,
}

struct Arrivals(mpsc::UnboundedReceiver<DuplexStream>);

impl Network for Exchange {
    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let door = self.doors.lock().unwrap().get(address).cloned();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let (here, there) = duplex(LINE_BYTES);
            let reached = door.is_some_and(|door| door.send(there).is_ok());
            if !reached {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Ok(Box::new(here) as Box<dyn Stream>)
        })
    }

    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let (door, arrivals) = mpsc::unbounded_channel();
        self.doors.lock().unwrap().insert(address.to_owned(), door);
        Box::pin(async move { Ok(Box::new(Arrivals(arrivals)) as Box<dyn Listener>) })
    }
}

impl Listener for Arrivals {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            match self.0.recv().await {
                Some(stream) => Ok(Box::new(stream) as Box<dyn Stream>),
                None => std::future::pending().await,
            }
        })
    }
}

/// What each node has applied, told by the nodes themselves.
#[derive(Default)]
struct Applied(Mutex<BTreeMap<LogIndex, LogLine>>);

impl Observer for Applied {
    fn applied(&self, line: LogLine) {
        let known = *self.0.lock().unwrap().entry(line.index).or_insert(line);
        assert_eq!(known, line, "two nodes, or two starts of one, applied different entries");
    }
}

/// Nodes 1 to 3 and what they stand on.
struct Simulated {
    applied: Arc<Applied>,
    exchange: Exchange,
    disks: Vec<SimulatedDisk>,
    began: Instant,
    nodes: Vec<Handle>,
}

impl Simulated {
    async fn start(seed: u64) -> Self {
        let disks = (0..3).map(|disk| SimulatedDisk::new(seed ^ disk)).collect();
        let mut cluster = Self {
            applied: Arc::default(),
            exchange: Exchange::default(),
            disks,
            began: Instant::now(),
            nodes: Vec::new(),
        };
        cluster.start_nodes().await;
        cluster
    }

    async fn start_nodes(&mut self) {
        let initial: Vec<InitialMember> = (1..=3)
            .map(|node| InitialMember { node: NodeId(node), peer: format!("node-{node}:7000") })
            .collect();
        for (member, disk) in initial.iter().zip(&self.disks) {
            let options = Options {
                node: member.node,
                cluster_id: "simulated".into(),
                data: "nowhere".into(),
                peer_listen: member.peer.clone(),
                initial: initial.clone(),
                timing: Timing::default(),
                snapshot_every_entries: 50,
                keep_entries: 5,
            };
            let began = self.began;
            let clock = move || TimeMs(u64::try_from(began.elapsed().as_millis()).unwrap());
            let world = World::simulated(Arc::new(self.exchange.clone()), disk.clone(), Arc::new(clock));
            let world = world.observed(self.applied.clone());
            let hooks = common::hooks(member.node, &Arc::default());
            self.nodes.push(Handle::start_in(world, options, hooks).await.unwrap());
        }
    }

    async fn stop_nodes(&mut self) {
        for node in self.nodes.drain(..) {
            node.shutdown().await;
        }
    }

    async fn leader(&self) -> usize {
        let ready = |node: &Handle| node.leadership().borrow().ready_here;
        eventually("a leader", || self.nodes.iter().position(ready)).await
    }
}

/// What can be seen of a run.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    /// Microseconds since the start, who leads, and the last index, at many moments.
    moments: Vec<(u128, usize, u64)>,
    states: Vec<u64>,
    disks: Vec<u64>,
}

async fn run(seed: u64) -> Trace {
    let mut cluster = Simulated::start(seed).await;
    let mut moments = Vec::new();
    let leader = cluster.leader().await;
    let scope = create_job(&cluster.nodes[leader]).await;
    for round in 0..3 {
        for number in 0..60 {
            let node = &cluster.nodes[(number + round) % 3];
            let index = write(node, scope, &format!("key-{number}"), &[7; 500]).await;
            moments.push((cluster.began.elapsed().as_micros(), leader, index.0));
        }
        let leader = cluster.leader().await;
        let crowd = (0..100).map(|number| {
            let command = put(scope, &format!("crowd-{number}"), b"x");
            cluster.nodes[leader].propose(Envelope { stamp: None, command })
        });
        futures::future::join_all(crowd).await.into_iter().for_each(|applied| drop(applied.unwrap()));
        cluster.nodes[leader].transfer_leadership(None).await.unwrap();
        let next = cluster.leader().await;
        let index = barrier(&cluster.nodes[leader]).await;
        moments.push((cluster.began.elapsed().as_micros(), next, index.0));
        cluster.stop_nodes().await;
        cluster.start_nodes().await;
        cluster.leader().await;
    }
    for node in &cluster.nodes {
        barrier(node).await;
        assert_eq!(local(node, scope, "key-59").unwrap(), vec![7; 500]);
        eventually("a snapshot", || (node.status().snapshot > LogIndex(0)).then_some(())).await;
    }
    for disk in &cluster.disks {
        let log = disk.log();
        assert!(!log.is_empty());
        for line in log {
            assert_eq!(cluster.applied.0.lock().unwrap().get(&line.index).copied().unwrap_or(line), line);
        }
    }
    let states = cluster.nodes.iter().map(|node| node.read(State::digest)).collect();
    cluster.stop_nodes().await;
    Trace { moments, states, disks: cluster.disks.iter().map(SimulatedDisk::digest).collect() }
}

fn simulate(seed: u64) -> Trace {
    let _chance = Chance::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
        .unwrap();
    runtime.block_on(run(seed))
}

#[test]
fn a_seed_repeats_a_whole_cluster() {
    let first = simulate(1);
    assert!(first.states.iter().all(|digest| *digest == first.states[0]), "{:?}", first.states);
    let again = simulate(1);
    let parting = first.moments.iter().zip(&again.moments).find(|(first, again)| first != again);
    assert!(again == first, "the runs part at {parting:?}");
    assert!(simulate(2).moments != first.moments, "the seed decides nothing");
}
