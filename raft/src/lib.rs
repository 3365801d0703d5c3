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
//!
//! # Map
//! | module | what |
//! |---|---|
//! | [`handle`](Handle), `options` | the public face |
//! | `node` | everything put together; start and stop |
//! | `types`, `config`, `codec` | what openraft must know of us; every byte we encode |
//! | `identity` | whose data directory this is |
//! | `log_store` | the Raft log: memory, writer thread, sled |
//! | `journal` | what makes the log durable, in front of sled |
//! | `state_machine`, `snapshot` | apply, and files of the whole state |
//! | `network` | the peer transport, both sides |
//! | `submit`, `forward`, `leader_link` | proposals here, proposals elsewhere, calls to the leader |
//! | `read_index` | linearizable reads |
//! | `divergence` | whether the states of all nodes are equal |
//! | `rejoin` | a node whose data is gone comes back without doing harm |
//! | `leadership`, `status`, `failure` | what is told to the rest of the process |

/// Several nodes in one process, as the tests outside of this crate have them, for tests of what only the
/// inside can do.
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod cluster;
mod codec;
mod config;
mod divergence;
mod failure;
mod forward;
mod handle;
mod identity;
mod journal;
mod leader_link;
mod leadership;
mod log_store;
mod network;
mod node;
mod options;
mod read_index;
mod rejoin;
mod snapshot;
mod state_machine;
mod status;
mod submit;
#[cfg(test)]
mod test_support;
#[cfg(test)]
extern crate self as tripod_raft;
mod types;

pub use divergence::Comparisons;
pub use handle::{
    Applied, AskHandler, EffectsHook, Handle, Hooks, Leadership, MemberStatus, ProposeError, Role,
    StartError, Status,
};
pub use options::{InitialMember, Options, Timing};
