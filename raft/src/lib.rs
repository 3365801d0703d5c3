//! Replication: one log, agreed on by all nodes, that drives one state machine on each of them.
//!
//! This is the only crate that knows openraft, sled and bincode. It does **not** know what a command
//! means (it applies it to a [`tripod_state::State`] and passes the effects on), nor clients, jobs,
//! or what the gateways of two nodes ask each other. Nothing of openraft shows in [`Handle`].
//!
//! # Invariants
//! * Nothing is acknowledged, and no vote is cast, before it is durable on this node; the flush runs
//!   in a thread of its own, never in a worker of the async runtime.
//! * Votes and appends reach the disk in the order in which openraft made them.
//! * The first failed write or flush is final: every later one fails, and [`Handle::failed`] resolves.
//! * A log that cannot be read to its end stops the node. It is never cut silently.
//! * A committed command that cannot be decoded stops the node. It is never skipped.
//! * [`ProposeError::Unknown`] is the only error after which a command may have taken effect.
//! * A node whose state is not that of the majority stops.
//! * A node that has lost its data does not vote before it holds again whatever it may have acknowledged.
//! * A message for another cluster or another node is refused.
//! * Everything that comes from outside (bytes of peers and disks, time, chance) comes through [`World`] and
//!   [`Chance`], so that a simulation repeats from its seed.
//!
//! # Map
//! A folder names those below it and never one above; `cargo xtask verify` checks that by the table in
//! `xtask/src/floors/mod.rs`. From the bottom up:
//!
//! | folder | what | must not know |
//! |---|---|---|
//! | `base` | words, codec, openraft's types, failure, chance, clock, times of a write's stages | disks, nodes, peers |
//! | `disk` | what is on disk and whose it is: contract, files, journal, sled, the simulated disk | the engine, leaders, members, snapshots |
//! | `log` | the Raft log: memory and writer thread over a disk | the journal's inside, apply |
//! | `snapshot` | files of the whole state | apply, peers |
//! | `apply` | the state machine, and what is remembered as entries are applied | leaders, peers, who compares or changes members |
//! | `offline` | [`backup`], [`doctor`] and [`repair`]: files while no node runs on them | a running node, its log's writer |
//! | `peers` | the peer transport: connections and calls on them, who may call, appends and snapshots on the wire | apply, leaders, nodes |
//! | `lead` | who leads; proposals, reads, handing over, and when a leader gives up | who looks after a node |
//! | `care` | what looks after a running node: members, levels, divergence, space, rejoining | the node, and each other |
//! | `node` | everything put together: start, stop, the port, status, [`World`] | |
//! | [`handle`](Handle) | the public face | |
//! | `fuzzing` | what reads bytes of others, as it is fuzzed | |

// The clusters of the integration tests serve some unit tests, too.
#[cfg(test)]
extern crate self as tripod_raft;

mod apply;
mod base;
mod care;
mod disk;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod golden;
mod handle;
mod lead;
mod log;
mod node;
mod offline;
mod peers;
mod snapshot;
#[cfg(test)]
mod test_care;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod test_cluster;
#[cfg(test)]
mod test_support;

pub use apply::hooks::{AskHandler, EffectsHook, Hooks};
pub use base::chance::{Chance, SeededChance};
pub use base::clock::{WallClock, time_of_day};
pub use base::codec::command_bytes;
pub use base::error::{Applied, NodeSilence, ProposeError, StartError};
pub use base::observer::{LogLine, Observer, SeenMembers};
pub use base::options::{InitialMember, Options, StateLimits, Timing};
pub use base::stages::{FlushTimes, HistogramView, StageTimes};
pub use care::divergence::Comparisons;
pub use care::level::{LevelError, LevelRequest, Levels, MemberLevel};
pub use care::membership::{
    ChangeError, LAG_ENTRIES_MAX, MemberList, MemberView, MembersAnswer, MembersRequest, Planned, Unwise,
    Votes,
};
pub use care::space::DiskStatus;
pub use disk::identity::{Owner, owner};
pub use disk::journal::SimulatedDisk;
pub use handle::Handle;
pub use lead::elections::ElectionCounts;
pub use lead::fitness::GivenUp;
pub use lead::gathering::gathered;
pub use lead::leadership::Leadership;
pub use node::measures::Measures;
pub use node::status::{MemberStatus, Role, Status};
pub use node::world::World;
pub use offline::{backup, doctor, repair};
pub use peers::network::{BoxFuture, Listener, Network, Stream};
pub use snapshot::SnapshotCounts;
