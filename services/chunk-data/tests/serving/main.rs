//! Workers as clients and other workers see them: over the wire, with a scheduler that says what the test says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod copies;
mod frames;
mod mutable;
mod putting;
mod reading;
mod support;
mod sweeping;
