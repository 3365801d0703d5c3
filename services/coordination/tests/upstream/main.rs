//! Upstream's own test suites, row by row: every test of theirs that a server can be held to is a test of the same name here.
//!
//! `README.md` beside this file lists all rows, the ones that do not apply with the reason; `rows` holds list and tests against each other.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod client_server;
mod extra;
mod legacy;
mod older;
mod preemption;
mod public_client;
mod rows;
mod service;
mod store;
