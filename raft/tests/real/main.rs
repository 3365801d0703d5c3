//! Nodes on this machine, for what lies in its sockets, files and threads. Everything else is in `tests/cluster`, where
//! time does not pass by itself.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

#[path = "../common/mod.rs"]
mod common;

mod disk_full;
mod half_copied;
mod identity;
mod refusals;
mod restored;
mod threads;
