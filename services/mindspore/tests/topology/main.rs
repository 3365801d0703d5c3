//! Workers of dynamic clusters as they speak: bytes in, bytes out, over a state in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod bad_input;
#[path = "../ps/capture.rs"]
mod capture;
mod captured;
mod cluster;
#[path = "../ps/death.rs"]
mod death;
mod every_message;
mod held;
mod marked;
mod silence;
mod support;
