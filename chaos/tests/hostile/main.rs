//! Clients that are broken or mean no good, against real processes. Each test is named after the finding of the audit that
//! it keeps closed, and does what the audit did with twice its numbers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod connections;
mod fairness;
mod lists;
mod memory;
mod mindspore;
mod peers;
mod scene;
mod sessions;
