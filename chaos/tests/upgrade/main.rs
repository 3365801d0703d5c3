//! Clusters of real processes are upgraded and taken back, node by node, while clients write.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod builds;
#[path = "../membership/counting.rs"]
mod counting;
#[path = "../membership/digests.rs"]
mod digests;
mod roll;

use digests::assert_equal_digests;
