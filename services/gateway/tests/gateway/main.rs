//! The gateway over a state in memory: exactly once, waiting, heartbeats and timers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may end where it stands")]

mod beat_sets;
mod common;
mod counts;
mod exactly_once;
mod follower;
mod full_disk;
mod heartbeats;
mod intervals;
mod owned_sessions;
mod readiness;
mod suspicion;
mod turns;
mod waiting;
