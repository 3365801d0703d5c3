//! Where what waits is run: one thread, time that passes only when nothing else can happen, and chance from a seed, so that an
//! input does the same whenever it is run.

use std::future::Future;

use tokio::runtime::{Builder, RngSeed};
use tripod_gateway::Chance;

/// Runs to the end.
///
/// # Panics
/// What is run panics, or there is no runtime to be had.
pub(crate) fn run<T>(what: impl Future<Output = T>) -> T {
    let _seeded = Chance::seed(1);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(b"fuzz"))
        .build()
        .expect("a runtime");
    runtime.block_on(what)
}
