//! Nodes of one cluster in this process, which a test starts, stops and asks.

use std::path::PathBuf;
use std::sync::Arc;

use tripod_raft::{Handle, InitialMember, Options, SimulatedDisk, StartError};
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::level;
use tripod_wait::until;

use super::ground::Ground;
use super::meter::Meter;
use super::network::Wire;
use super::{LeaderSigns, hooks};

/// Nodes 1 to n. A slot is empty while its node is stopped.
pub(crate) struct Cluster {
    pub(crate) ground: Ground,
    pub(crate) options: Vec<Options>,
    pub(crate) nodes: Vec<Option<Handle>>,
    pub(crate) heard: Vec<Arc<LeaderSigns>>,
}

/// Options of nodes 1 to `count` of one cluster.
pub(crate) fn options(ground: &Ground, count: u64) -> Vec<Options> {
    let initial: Vec<InitialMember> =
        (1..=count).map(|node| InitialMember { node: NodeId(node), peer: ground.new_peer() }).collect();
    let of = |member: &InitialMember| Options {
        node: member.node,
        cluster_id: "test-cluster".into(),
        data: ground.data(member.node),
        peer_listen: member.peer.clone(),
        initial: initial.clone(),
        timing: ground.timing(),
        snapshot_every_entries: 100_000,
        keep_entries: 10_000,
        state: tripod_raft::StateLimits::default(),
    };
    initial.iter().map(of).collect()
}

fn slot(node: u64) -> usize {
    usize::try_from(node - 1).unwrap()
}

impl Cluster {
    /// Starts all of `count` nodes in a simulation.
    pub(crate) async fn start(count: u64) -> Self {
        Self::start_with(count, |_| {}).await
    }

    /// [`Self::start`], with every node's options changed.
    pub(crate) async fn start_with(count: u64, change: impl Fn(&mut Options)) -> Self {
        Self::start_on(Ground::simulated(), count, change).await
    }

    /// [`Self::start_with`] on this machine.
    pub(crate) async fn start_real(count: u64, change: impl Fn(&mut Options)) -> Self {
        Self::start_on(Ground::real(), count, change).await
    }

    pub(crate) async fn start_on(ground: Ground, count: u64, change: impl Fn(&mut Options)) -> Self {
        let mut cluster = Self::prepared(ground, count, change);
        for node in 1..=count {
            cluster.start_node(node).await.unwrap();
        }
        cluster
    }

    /// A cluster none of whose nodes is started yet.
    pub(crate) fn prepared(ground: Ground, count: u64, change: impl Fn(&mut Options)) -> Self {
        let mut options = options(&ground, count);
        options.iter_mut().for_each(change);
        let heard = options.iter().map(|_| Arc::default()).collect();
        Self { ground, nodes: vec![None; options.len()], options, heard }
    }

    pub(crate) async fn start_node(&mut self, node: u64) -> Result<(), StartError> {
        self.start_as(node, level::NEWEST).await
    }

    /// Starts a node as a build that supports levels up to the one given.
    pub(crate) async fn start_as(&mut self, node: u64, level_max: FeatureLevel) -> Result<(), StartError> {
        let options = self.options[slot(node)].clone();
        let world = self.ground.world(&options).limited_to(level_max);
        let hooks = hooks(options.node, &self.heard[slot(node)]);
        self.nodes[slot(node)] = Some(Handle::start_in(world, options, hooks).await?);
        Ok(())
    }

    pub(crate) async fn stop_node(&mut self, node: u64) {
        let handle = self.nodes[slot(node)].take().unwrap();
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
        self.nodes[slot(node)].as_ref().unwrap()
    }

    pub(crate) fn running(&self) -> Vec<u64> {
        (1..).zip(&self.nodes).filter(|(_, handle)| handle.is_some()).map(|(node, _)| node).collect()
    }

    pub(crate) fn heard(&self, node: u64) -> &LeaderSigns {
        &self.heard[slot(node)]
    }

    pub(crate) fn data(&self, node: u64) -> PathBuf {
        self.options[slot(node)].data.clone()
    }

    fn peer(&self, node: u64) -> &str {
        &self.options[slot(node)].peer_listen
    }

    /// The disk of a simulated node.
    pub(crate) fn disk(&self, node: u64) -> SimulatedDisk {
        self.ground.disk(NodeId(node))
    }

    /// Whether a file of this name, a note or a snapshot, is on the disk of a simulated node.
    pub(crate) fn has_file(&self, node: u64, name: &str) -> bool {
        self.disk(node).files().contains_key(name)
    }

    /// What is measured on the ways to a simulated node.
    pub(crate) fn meter(&self, node: u64) -> Arc<Meter> {
        self.ground.exchange().meter(self.peer(node))
    }

    /// Changes all ways to a simulated node.
    pub(crate) fn wire(&self, to: u64, wire: Wire) {
        self.ground.exchange().set_all(self.peer(to), wire);
    }

    /// Changes the way from a simulated node to another one.
    pub(crate) fn wire_between(&self, from: u64, to: u64, wire: Wire) {
        self.ground.exchange().set(self.peer(from), self.peer(to), wire);
    }

    /// Changes all ways from a simulated node to the others.
    pub(crate) fn wire_from(&self, from: u64, wire: Wire) {
        for to in self.options.iter().filter(|options| options.node.0 != from) {
            self.ground.exchange().set(self.peer(from), &to.peer_listen, wire);
        }
    }

    /// Waits until one of the running nodes leads, is ready, and all of them know.
    pub(crate) async fn leader(&self) -> u64 {
        until("a leader that all running nodes know", || {
            let running = self.running();
            let ready = running.iter().find(|node| self.node(**node).leadership().borrow().ready_here)?;
            let known = running
                .iter()
                .all(|node| self.node(*node).leadership().borrow().leader == Some(NodeId(*ready)));
            known.then_some(*ready)
        })
        .await
    }

    pub(crate) async fn follower(&self) -> u64 {
        let leader = self.leader().await;
        self.running().into_iter().find(|node| *node != leader).unwrap()
    }
}
