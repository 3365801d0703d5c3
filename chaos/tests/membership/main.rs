//! Members of a cluster of real processes come, go and change places, by the command line, while clients
//! write.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod counting;
mod digests;
mod drain;
mod endpoints;
mod operator;
mod replace;

use digests::assert_equal_digests;
