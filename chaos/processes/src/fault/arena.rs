//! The cluster as faults see it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;
use tripod_client::{Client, Config};
use tripod_proto::code::Code;

use super::members;
use super::rot::{self, Rotten};
use super::storage::{Disks, Shim};
use super::{Builds, Target};
use crate::cluster::{Cluster, Peers};

/// How long a node may take to say what it is; a paused one says nothing.
const STATUS_LIMIT: Duration = Duration::from_millis(500);
/// How long a fault that needs a leader waits for one.
const LEADER_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Lines of its log that tell why a node ended.
const LAST_LINES: usize = 5;

/// What faults are done to, and what was noticed meanwhile.
pub struct Arena<'a> {
    pub cluster: &'a mut Cluster,
    /// What a node did that it must not do, in words: it ended by itself, or would not end when told to.
    pub misconduct: Vec<String>,
    /// What stands between the nodes and their disks, if anything does.
    pub(super) shim: Option<&'a Shim>,
    /// Nodes that may end by themselves just now, if they say why.
    pub(super) may_end: BTreeSet<u64>,
    /// Writes that power cuts found written and not flushed.
    pub unflushed_writes: usize,
    /// The disks of the nodes, if each has one of its own.
    pub(super) disks: Option<&'a Disks>,
    /// The node that has a flipped bit somewhere, until that was found.
    pub(super) rotten: Option<Rotten>,
    /// Machines whose node was removed, and that have none now.
    free: BTreeSet<u64>,
    /// Whether members come and go. Then a node may end by itself that was removed.
    pub members_change: bool,
    /// The scheduler's workers and stores, if there are some.
    pub peers: Option<&'a mut Peers>,
    /// Which build the nodes are, if they are upgraded.
    pub builds: Option<Builds>,
    /// Parts of the nodes' logs, in bytes, in which a node said with a code that its disk is damaged.
    pub excused: BTreeMap<u64, Vec<Range<usize>>>,
    /// The most memory that each node was seen to take, in bytes, over all its lives.
    pub resident_max_bytes: BTreeMap<u64, u64>,
}

impl<'a> Arena<'a> {
    /// Nothing was noticed so far.
    #[must_use]
    pub fn new(cluster: &'a mut Cluster, shim: Option<&'a Shim>, disks: Option<&'a Disks>) -> Self {
        Self {
            cluster,
            misconduct: Vec::new(),
            shim,
            may_end: BTreeSet::new(),
            unflushed_writes: 0,
            disks,
            rotten: None,
            free: BTreeSet::new(),
            members_change: false,
            peers: None,
            builds: None,
            excused: BTreeMap::new(),
            resident_max_bytes: BTreeMap::new(),
        }
    }

    /// Who leads now, as it says itself; with the highest term, if several say so. `None`: nobody does for
    /// some seconds.
    pub async fn leader(&mut self) -> Option<u64> {
        let deadline = Instant::now() + LEADER_PATIENCE;
        loop {
            let leader = self.leader_now().await;
            if leader.is_some() || Instant::now() >= deadline {
                return leader;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// The running node that is meant.
    pub async fn resolve(&mut self, target: Target) -> Option<u64> {
        let leader = self.leader().await;
        let Target::Follower(rank) = target else { return leader };
        let others: Vec<u64> =
            self.cluster.running().into_iter().filter(|node| Some(*node) != leader).collect();
        let place = rank.checked_rem(others.len() as u64)?;
        others.get(usize::try_from(place).ok()?).copied()
    }

    /// Notes which nodes have ended by themselves since the last look, and starts them again. A node whose disk
    /// fails may end if it says why, and stays down until the fault ends.
    ///
    /// # Errors
    /// A node cannot be started.
    pub fn look_for_the_dead(&mut self) -> anyhow::Result<()> {
        self.look_at_memory();
        if let Some(peers) = &mut self.peers {
            peers.look_for_the_dead()?;
        }
        for (node, status) in self.cluster.take_ended() {
            if let Some(rotten) = self.rotten.take_if(|rotten| rotten.is(node)) {
                rot::ended(self, rotten, status)?;
                continue;
            }
            let log = std::fs::read(self.cluster.log(node)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let mut last: Vec<&str> = log.lines().rev().take(LAST_LINES).collect();
            last.reverse();
            if self.members_change && members::says_removed(&last) {
                self.make_free(node)?;
                continue;
            }
            let may = self.may_end.contains(&node);
            let says_why = last.iter().any(|line| Code::find_cause(line).is_some());
            if !(may && says_why) {
                let last = last.join(" | ");
                self.misconduct
                    .push(format!("node {node} ended by itself with {status}; it said last: {last}"));
            }
            if !may {
                self.cluster.restart(node)?;
            }
        }
        Ok(())
    }

    /// A node that ends meanwhile is not asked.
    fn look_at_memory(&mut self) {
        for node in self.cluster.ids() {
            let Ok(process) = self.cluster.process(node) else { continue };
            let Ok(bytes) = process.resident_max_bytes() else { continue };
            let known = self.resident_max_bytes.entry(node).or_default();
            *known = bytes.max(*known);
        }
    }

    /// A machine without a node, which gets one now.
    pub(super) fn free(&mut self) -> Option<u64> {
        self.free.pop_first()
    }

    /// Takes a machine back whose node was removed.
    pub(super) fn make_free(&mut self, machine: u64) -> anyhow::Result<()> {
        self.cluster.vacate(machine)?;
        self.free.insert(machine);
        Ok(())
    }

    async fn leader_now(&mut self) -> Option<u64> {
        let running = self.cluster.running();
        let endpoints = running.iter().map(|node| self.cluster.endpoint(*node)).collect();
        let client = Client::new(&Config::new(endpoints)).ok()?;
        let answers = client.status(STATUS_LIMIT, false).await;
        let leading = running.into_iter().zip(answers);
        let leading = leading.filter_map(|(node, answer)| Some((node, answer.status.ok()?)));
        let leading = leading.filter(|(_, status)| status.leader_id == status.node_id);
        leading.max_by_key(|(_, status)| status.term).map(|(node, _)| node)
    }
}
