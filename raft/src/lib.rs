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
//! | module | what |
//! |---|---|
//! | [`handle`](Handle), `options` | the public face |
//! | `node` | everything put together; start and stop |
//! | `world` | what a node stands on: network, storage and clock, the real ones or a simulation's |
//! | `chance` | every random number, seeded in a simulation |
//! | `types`, `config`, `runtime`, `codec` | what openraft must know of us; every byte we encode |
//! | `storage`, `identity` | opening what is on disk; whose data directory this is |
//! | `log_store` | the Raft log: memory, writer thread, sled |
//! | `journal` | what makes the log durable, in front of sled; the simulated disk |
//! | `state_machine`, `snapshot` | apply, and files of the whole state |
//! | [`backup`] | snapshots as backups: saved, verified, restored to a new cluster |
//! | [`doctor`] | what is in the data directory of a stopped node |
//! | [`repair`], `skipped` | what is mended there, and entries that are passed over |
//! | `network` | the peer transport, both sides |
//! | `submit`, `inspect`, `forward`, `leader_link` | proposals here, what is taken of others, proposals elsewhere, calls to the leader |
//! | `read_index`, `held_votes` | linearizable reads, and what proves them |
//! | `space` | full disks, and what is refused then |
//! | `fitness` | when a leader gives up leading |
//! | `divergence` | whether the states of all nodes are equal |
//! | `membership` | who the members are, while the cluster runs |
//! | `level` | which feature level all members support, and what is refused for its sake |
//! | `rejoin` | a node whose data is gone comes back without doing harm |
//! | `leadership`, `status`, `failure` | what is told to the rest of the process |
//! | `fuzzing` | what reads bytes of others, as it is fuzzed |
//! | `stages`, `measures` | how long a write takes, stage by stage, and other figures |

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
#[path = "../tests/common/mod.rs"]
mod test_cluster;
#[cfg(test)]
mod test_support;

pub use apply::hooks::{AskHandler, EffectsHook, Hooks};
pub use base::chance::{Chance, SeededChance};
pub use base::clock::{WallClock, time_of_day};
pub use base::codec::command_bytes;
pub use base::error::{Applied, ProposeError, StartError};
pub use base::observer::{LogLine, Observer, SeenMembers};
pub use base::options::{InitialMember, Options, StateLimits, Timing};
pub use base::stages::{FlushTimes, HistogramView, StageTimes};
pub use care::divergence::Comparisons;
pub use care::level::{LevelError, LevelRequest, Levels, MemberLevel};
pub use care::membership::{
    ChangeError, LAG_ENTRIES_MAX, MemberList, MemberSight, MembersAnswer, MembersRequest, Planned, Unwise,
    Votes,
};
pub use care::space::DiskStatus;
pub use disk::identity::{Owner, owner};
pub use disk::journal::SimulatedDisk;
pub use handle::Handle;
pub use lead::elections::ElectionCounts;
pub use lead::fitness::GivenUp;
pub use lead::leadership::Leadership;
pub use node::measures::Measures;
pub use node::status::{MemberStatus, Role, Status};
pub use node::world::World;
pub use offline::{backup, doctor, repair};
pub use peers::connections::{ConnectionLimits, Connections, FILES_RESERVED, Full, Place};
pub use peers::network::{BoxFuture, Listener, Network, Stream};
pub use snapshot::SnapshotCounts;
