//! What nodes of a parameter server are told by whoever leads, over a state in memory: orders in, bytes out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

#[path = "../ps/capture.rs"]
mod capture;
mod captured;
mod every_step;
mod failover;
#[path = "../ps/operator.rs"]
mod operator;
mod orders;
mod played;
mod queries;
mod rest;
mod scaling;
mod silence;
mod support;
mod trouble;
