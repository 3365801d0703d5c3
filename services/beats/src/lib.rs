//! Heartbeats of an agent's clients: which are due and what they were answered before ([`Ledger`]), and which of them the
//! leader keeps, so that the same ones are told in a word ([`Sets`]).
//!
//! An agent stands on it, and so do agents that are only played, so that what these cost a cluster is what agents cost it.
//!
//! What this crate does not know: how the cluster is reached, when beats are told, what a heartbeat means.
//!
//! Invariants:
//! * No beat is told that no client made.
//! * Whoever makes beats up takes no place of a client whose beat the cluster has taken.
//!
//! | module | what |
//! |---|---|
//! | `ledger` | which beats are due, who waits for them, and what they were answered before |
//! | `sets` | beats that the leader keeps, and that are told in a word |

mod ledger;
mod sets;

use std::time::Duration;

pub use ledger::{BEATS_MAX, Beat, Lease, Ledger, Taken, Verdict};
pub use sets::{Digest, KeptSet, Sets};

/// As messages have it.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
