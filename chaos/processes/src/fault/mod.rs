//! What is done to a cluster while clients use it.
//!
//! A [`Fault`] is a plain value, drawn from a seed long before it happens and written down with the run. Whom
//! it hits is decided when it happens: the leader, or the n-th of the others.
//!
//! | module | what |
//! |---|---|
//! | `process` | SIGKILL, SIGSTOP, SIGTERM, another build, handing over leadership |
//! | `builds` | which nodes are of the build before still |
//! | `members` | who takes part changes, or is drained |
//! | `roll` | who takes part, as the leader has it |
//! | `stand_back` | that a drained node leads nothing, when the faults are over |
//! | `peers` | SIGKILL of the scheduler's workers and object stores |
//! | `network` | partitions, delay, narrow lines, resets |
//! | `disk` | disks that are slow, stall, fail or are full, clocks that jump, power that goes |
//! | `rot` | bits that flip, and the way back of the node that finds them |
//! | [`storage`] | how these are made, and what else can be done to files and disks; usable by itself |
//! | `arena` | the cluster as faults see it: who leads, who runs |

mod arena;
mod builds;
mod disk;
mod members;
mod network;
mod peers;
mod process;
mod roll;
mod rot;
mod stand_back;
pub mod storage;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cluster::Seat;

pub use arena::Arena;
pub use builds::Builds;
pub use members::Wish;
pub use members::settle;
pub use process::upgrade_the_rest;
pub use stand_back::stands_back;

/// Whom a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    Leader,
    /// The n-th running node of those that do not lead, counted around.
    Follower(u64),
}

/// Which messages of a node are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// It sends, and hears nothing of other nodes.
    Inbound,
    /// It hears, and nobody hears it.
    Outbound,
}

/// One disturbance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// SIGKILL; the node is started again when the fault ends.
    Kill(Target),
    /// SIGKILL to all nodes within a few milliseconds, and all are started again.
    KillAll,
    /// SIGSTOP until the fault ends.
    Pause(Target),
    /// SIGTERM; the node is started again when the fault ends.
    Terminate(Target),
    /// SIGTERM to a node of the build before, which is the newer one when the fault ends. If the target is that already,
    /// another node of the build before is hit.
    Upgrade(Target),
    /// The leader hands over to another node; nothing is broken.
    TransferLeadership,
    /// No message between the node and the others, in either direction. With `reset`, the connections are
    /// reset at the end; without, what was held back arrives then, long after it was sent.
    Isolate {
        target: Target,
        reset: bool,
    },
    /// Messages between nodes are lost in one direction only.
    OneWay {
        target: Target,
        way: Way,
    },
    /// Two halves that do not hear each other, and one node that hears and is heard by all.
    Bridge,
    /// Clients do not reach the node; the other nodes do.
    CutClients(Target),
    /// Everything between the node and everybody else takes longer.
    Delay {
        target: Target,
        least_ms: u64,
        jitter_ms: u64,
    },
    /// Everything that the node sends and receives goes over a narrow line.
    Slow {
        target: Target,
        bytes_per_second: u64,
    },
    /// Connections of the node, with nodes and clients, are reset at random times.
    Loss {
        target: Target,
        lifetime_max_ms: u64,
    },
    /// The power of the node goes: what it had not flushed is lost, all or by sectors, as `chance` says.
    PowerCut {
        target: Target,
        chance: u64,
    },
    /// The power of all nodes goes at once.
    PowerCutAll {
        chance: u64,
    },
    /// The power of the node goes, and with it that of its disk, a file system of its own.
    DiskCut(Target),
    /// The power of all nodes and of all their disks goes at once.
    DiskCutAll,
    /// SIGKILL to a node of a cluster that is whole, and a bit of one of its files is turned over, as `chance`
    /// says. When the fault ends it is started again, and must have everything or end with a code.
    FlipBit {
        target: Target,
        chance: u64,
    },
    /// Every flush of the node takes this much longer.
    SlowDisk {
        target: Target,
        delay_ms: u64,
    },
    /// Flushes of the node do not return until the fault ends.
    StallDisk(Target),
    /// Flushes of the node fail after so many more have succeeded. The node must end by itself, and is started
    /// again when the fault ends.
    FailFlush {
        target: Target,
        passes: u64,
    },
    /// Writes of the node fail for lack of space. If it ends by itself, it must say why.
    FullDisk(Target),
    /// The node's wall clock is this much wrong until the fault ends.
    ClockJump {
        target: Target,
        shift_ms: i64,
    },
    /// New connections to and from the node are refused, and open ones reset.
    Refuse(Target),
    /// SIGKILL to a worker of the scheduler, or to an object store; it is started again when the fault ends.
    KillWorker {
        chance: u64,
    },
    KillStore {
        chance: u64,
    },
    /// SIGKILL to an object store and all workers of its machine within a few milliseconds.
    KillMachine {
        chance: u64,
    },
    /// The members change; whom it is about, `chance` says.
    Members {
        wish: Wish,
        chance: u64,
    },
}

/// What a fault is done to. Two faults of the same subsystem never happen at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subsystem {
    /// Processes, their disks and clocks.
    Machine,
    Network,
    /// Who takes part.
    Members,
    /// The scheduler's workers and stores.
    Peers,
}

/// A fault that has begun, with what ends it.
#[derive(Debug)]
pub struct Begun {
    /// Whom it hit, for people.
    pub target: String,
    undo: Undo,
}

#[derive(Debug)]
enum Undo {
    /// It ended with its beginning.
    Nothing,
    Start(Vec<u64>),
    Resume(u64),
    StartPeers(Vec<Seat>),
    HealDisk {
        node: u64,
        failed_before: u64,
    },
    HealNetwork {
        reset: Vec<u64>,
    },
    FindOut(rot::Damaged),
}

impl Fault {
    /// The kind, as reports count it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kill(Target::Leader) => "kill-leader",
            Self::Kill(Target::Follower(_)) => "kill-follower",
            Self::KillAll => "kill-all",
            Self::Pause(Target::Leader) => "pause-leader",
            Self::Pause(Target::Follower(_)) => "pause-follower",
            Self::Terminate(Target::Leader) => "terminate-leader",
            Self::Terminate(Target::Follower(_)) => "terminate-follower",
            Self::Upgrade(_) => "upgrade",
            Self::TransferLeadership => "transfer-leadership",
            Self::Isolate { target: Target::Leader, .. } => "partition-leader",
            Self::Isolate { target: Target::Follower(_), .. } => "partition-follower",
            Self::OneWay { way: Way::Inbound, .. } => "partition-deaf",
            Self::OneWay { way: Way::Outbound, .. } => "partition-mute",
            Self::Bridge => "partition-bridge",
            Self::CutClients(_) => "partition-clients",
            Self::Delay { .. } => "delay",
            Self::Slow { .. } => "slow-link",
            Self::Loss { .. } => "loss",
            Self::Refuse(_) => "refuse-connections",
            Self::KillWorker { .. } => "kill-worker",
            Self::KillStore { .. } => "kill-store",
            Self::KillMachine { .. } => "kill-machine",
            Self::Members { wish, .. } => wish.kind(),
            Self::PowerCut { .. } => "power-cut",
            Self::PowerCutAll { .. } => "power-cut-all",
            Self::DiskCut(_) => "power-cut-ext4",
            Self::DiskCutAll => "power-cut-all-ext4",
            Self::FlipBit { .. } => "bit-flip",
            Self::SlowDisk { .. } => "slow-disk",
            Self::StallDisk(_) => "stalled-disk",
            Self::FailFlush { .. } => "failed-flush",
            Self::FullDisk(_) => "full-disk",
            Self::ClockJump { .. } => "clock-jump",
        }
    }

    /// What it is done to, and so which other faults it excludes.
    #[must_use]
    pub fn subsystem(&self) -> Subsystem {
        match self {
            Self::Kill(_)
            | Self::KillAll
            | Self::Pause(_)
            | Self::Terminate(_)
            | Self::Upgrade(_)
            | Self::TransferLeadership
            | Self::PowerCut { .. }
            | Self::PowerCutAll { .. }
            | Self::DiskCut(_)
            | Self::DiskCutAll
            | Self::FlipBit { .. }
            | Self::SlowDisk { .. }
            | Self::StallDisk(_)
            | Self::FailFlush { .. }
            | Self::FullDisk(_)
            | Self::ClockJump { .. } => Subsystem::Machine,
            Self::Isolate { .. }
            | Self::OneWay { .. }
            | Self::Bridge
            | Self::CutClients(_)
            | Self::Delay { .. }
            | Self::Slow { .. }
            | Self::Loss { .. }
            | Self::Refuse(_) => Subsystem::Network,
            Self::KillWorker { .. } | Self::KillStore { .. } | Self::KillMachine { .. } => Subsystem::Peers,
            Self::Members { .. } => Subsystem::Members,
        }
    }

    /// Whether nodes must run with the library that stands between them and their disks.
    #[must_use]
    pub fn needs_library(&self) -> bool {
        matches!(
            self,
            Self::PowerCut { .. }
                | Self::PowerCutAll { .. }
                | Self::SlowDisk { .. }
                | Self::StallDisk(_)
                | Self::FailFlush { .. }
                | Self::FullDisk(_)
                | Self::ClockJump { .. }
        )
    }

    /// Whether each node must have a file system of its own.
    #[must_use]
    pub fn needs_disks(&self) -> bool {
        matches!(self, Self::DiskCut(_) | Self::DiskCutAll)
    }

    /// Does it; `None` if there is nobody to whom it could be done just now, such as when nobody leads.
    ///
    /// # Errors
    /// The harness failed.
    pub async fn inject(&self, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
        if let Self::FlipBit { target, chance } = self {
            return rot::inject(*target, *chance, arena).await;
        }
        if let Self::Members { wish, chance } = self {
            return members::inject(*wish, *chance, arena).await;
        }
        match self.subsystem() {
            Subsystem::Machine if self.needs_disks() => disk::cut_power(self, arena).await,
            Subsystem::Machine if self.needs_library() => disk::inject(self, arena).await,
            Subsystem::Machine => process::inject(self, arena).await,
            Subsystem::Peers => peers::inject(self, arena),
            Subsystem::Network | Subsystem::Members => network::inject(self, arena).await,
        }
    }
}

impl Begun {
    fn new(target: impl Into<String>, undo: Undo) -> Option<Self> {
        Some(Self { target: target.into(), undo })
    }

    /// Ends it. What a node does next is its own business: this does not wait until it serves.
    ///
    /// # Errors
    /// The harness failed.
    pub async fn heal(self, arena: &mut Arena<'_>) -> anyhow::Result<()> {
        match self.undo {
            Undo::Nothing => {}
            Undo::Start(nodes) => {
                for node in nodes {
                    arena.cluster.restart(node)?;
                }
            }
            Undo::StartPeers(seats) => peers::start(seats, arena)?,
            Undo::Resume(node) => arena.cluster.resume(node)?,
            Undo::HealDisk { node, failed_before } => disk::heal(node, failed_before, arena).await?,
            Undo::FindOut(damaged) => rot::find_out(damaged, arena).await?,
            Undo::HealNetwork { reset } => network::heal(arena.cluster, &reset)?,
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}
