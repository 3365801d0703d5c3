//! Calls of clients take turns, so that no connection and no address can keep the others waiting.
//!
//! A bounded number of calls is under way at a time. Who finds no room waits; room that comes is given to addresses in turns,
//! and within an address to its connections in turns. A command with many bytes costs its caller as many turns as it
//! costs the cluster. What this node does for its own sake (heartbeats, expiry, members, its sessions) is not counted here
//! and never waits here.
//!
//! | module | holds |
//! |---|---|
//! | `order` | who is next of several members |
//! | `queue` | who waits, by address and connection |
//! | `turns` | the room, and the waiting for it |

mod order;
mod queue;
mod turns;

pub use turns::TurnCounts;
pub(crate) use turns::{Limits, Turn, Turns};

/// Proposals of clients that are under way on a node at a time. More than a flush of the journal takes at its usual pace, so
/// that the disks are never idle for want of them; few enough that whoever's turn comes next is answered some
/// milliseconds later.
pub(crate) const PROPOSALS: Limits = Limits { count: 512, bytes: 16 << 20 };
/// The same of linearizable reads, which share their rounds: many more than arrive in the time of one.
pub(crate) const READS: Limits = Limits { count: 4_096, bytes: u64::MAX };
/// The same of long looks: each takes a processor, and keeps what is replaced meanwhile in memory.
pub(crate) const FORKS: Limits = Limits { count: 2, bytes: u64::MAX };
