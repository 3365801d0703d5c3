//! What clients do that are broken or mean no good, and a well-behaved one beside them.
//!
//! Every attack is bounded in count and in time, ends by itself, goes to nodes on loopback only, and says how its calls
//! ended. What a cluster may do about them is judged elsewhere: this only makes them.
//!
//! | module | what |
//! |---|---|
//! | `aim` | the nodes that are attacked, and where attacks come from |
//! | [`wire`] | connections that say nothing, half of something, or read nothing of what they asked for |
//! | [`calls`] | calls with absurd lists, and gets that wait |
//! | [`sessions`] | as many sessions as there are, and sessions of others |
//! | [`state`] | what makes the state grow |
//! | [`flood`] | cheap writes without end |
//! | [`peers`] | votes and proposals that no node would send, at the peer port |
//! | `tally` | how calls ended, counted |
//! | `witness` | a client that does nothing wrong, and notices what becomes of it |

mod aim;
pub mod calls;
pub mod flood;
pub mod peers;
pub mod sessions;
pub mod state;
mod tally;
pub mod wire;
mod witness;

pub use aim::Aim;
pub use tally::{Bounds, Tally};
pub use witness::{Testimony, Witness};

/// Flags of nodes that are attacked: what they hold for clients is a part of what they may take.
pub const NODE_ARGS: [&str; 1] = ["--client-memory-mib=512"];
/// What such a node may take of memory at any moment, in bytes: its budget for clients, what it needs for itself, and a
/// fifth of both.
pub const RESIDENT_BYTES_MAX: u64 = (768 * 6 / 5) << 20;
