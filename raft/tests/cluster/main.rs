//! Whole nodes in a world that is brought along: one thread, paused time, connections and disks in memory, and a seed
//! that settles everything else. What needs real sockets, files or threads is in `tests/real`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod fitness;
mod gathering;
mod idle;
mod levels;
mod lost_answers;
mod membership;
mod memory;
mod refusals;
mod rejoin;
mod removed;
mod repeats;
mod replication;
mod silent_leader;
mod snapshots;
mod snapshots_resumed;
mod suspicion;
