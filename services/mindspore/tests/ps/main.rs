//! Nodes of parameter servers as they speak, and their operators: bytes in, bytes out, over a state in memory. What nodes
//! are told on their own ports is taken from the state.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod bad_input;
mod capture;
mod captured;
mod death;
mod events;
mod every_message;
mod finish;
mod held;
mod http;
mod marked;
mod nodes;
mod operator;
mod registration;
mod replacement;
mod scaling;
mod support;
