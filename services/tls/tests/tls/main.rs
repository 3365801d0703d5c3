//! Handshakes over lines in memory, with certificates that are made for each test.
//!
//! Numbers as in `s20` are those of the table of attacks on connections.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod clients;
mod files;
mod reload;
mod servers;
mod support;
