//! Members of a cluster of real processes come, go and change places, by the command line, while clients
//! write.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod counting;
mod digests;
mod drain;
mod endpoints;
mod operator;
mod replace;
mod resize;

use std::time::Duration;

use digests::assert_equal_digests;

/// How long anything may take before a test gives up: far more than it needs, for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
