//! Runs that a seed settles: one thread, paused time, and nothing from outside.

use std::cell::Cell;
use std::ops::Range;

use tokio::runtime::{Builder, RngSeed};
use tokio::time::Instant;
use tripod_raft::Chance;
use xxhash_rust::xxh3::xxh3_64;

thread_local! {
    /// A number over all that was noted in the run of this thread.
    static TRACE: Cell<u64> = const { Cell::new(0) };
}

/// Runs a test once for each seed, and with the first one twice: a run that cannot be repeated would be of no use
/// when it fails. For tests in which the order of events is not always the same.
pub(crate) fn each_seed(seeds: Range<u64>, run: impl AsyncFn()) {
    let seeds = asked_for().unwrap_or(seeds);
    let first = seeds.start;
    let traces: Vec<u64> = seeds.map(|seed| traced(seed, &run)).collect();
    assert_eq!(traced(first, &run), traces[0], "seed {first} gives another run when it is repeated");
}

/// The same for a test in which servers refuse many calls unread. Each of those is a stream that h2 resets and remembers
/// for a second by the machine's clock; what comes later is answered in another way. So the seed does not settle such
/// a run on a machine that takes longer than that for it, and it is not repeated.
pub(crate) fn each_seed_once(seeds: Range<u64>, run: impl AsyncFn()) {
    for seed in asked_for().unwrap_or(seeds) {
        with_seed(seed, &run);
    }
}

fn traced(seed: u64, run: &impl AsyncFn()) -> u64 {
    with_seed(seed, run);
    TRACE.get()
}

/// The seeds of a longer search, `FIRST..END`, in place of those that every run of the tests has.
fn asked_for() -> Option<Range<u64>> {
    let said = std::env::var("TRIPOD_SEEDS").ok()?;
    let (first, end) = said.split_once("..").expect("TRIPOD_SEEDS is FIRST..END");
    let number = |text: &str| text.parse::<u64>().expect("TRIPOD_SEEDS is two numbers");
    Some(number(first)..number(end))
}

/// Runs a test with one seed.
pub(crate) fn once(run: impl AsyncFn()) {
    with_seed(1, run);
}

pub(crate) fn with_seed<T>(seed: u64, run: impl AsyncFnOnce() -> T) -> T {
    let _named = Named(seed);
    let _chance = Chance::seed(seed);
    TRACE.set(0);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
        .unwrap();
    runtime.block_on(run())
}

/// Makes something that happened a part of the trace.
pub(crate) fn note(began: Instant, what: &str) {
    let (known, at) = (TRACE.get().to_le_bytes(), began.elapsed().as_nanos().to_le_bytes());
    TRACE.set(xxh3_64(&[&known, at.as_slice(), what.as_bytes()].concat()));
}

/// Tells the seed of a run that fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with seed {}", self.0);
        }
    }
}
