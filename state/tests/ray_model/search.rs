//! Many histories, and the shortest one that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::generate::{Choice, history};

/// Histories of one search unless the environment says otherwise.
const CASES: u64 = 10_000;
/// Searches may go on beside each other, and the machine has other work too.
const THREADS: u64 = 2;

/// The number that an environment variable holds.
#[expect(clippy::disallowed_methods, reason = "a test is no replica")]
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Runs many histories; one that fails is shortened, and both the seed and the short history are told.
pub(crate) fn search(share: u64, run: impl Fn(&[Choice]) -> Result<(), String> + Sync) {
    let first = number("TRIPOD_SEED").unwrap_or(0);
    let cases = number("TRIPOD_CASES").unwrap_or(CASES) / share;
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases.max(1) {
                        return;
                    }
                    let choices = history(seed);
                    if let Err(fault) = outcome(&run, &choices) {
                        next.store(u64::MAX / 2, Ordering::Relaxed);
                        let short = shorten(&run, choices);
                        let told = outcome(&run, &short).err().unwrap_or(fault);
                        panic!("TRIPOD_SEED={seed}, shortened to {} steps: {told}", short.len());
                    }
                }
            });
        }
    });
}

/// A panic is a failure like any other, so that it is shortened too.
fn outcome(run: &impl Fn(&[Choice]) -> Result<(), String>, choices: &[Choice]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| run(choices))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a text")))
    })
}

/// Takes out parts, halves first and single steps last, as long as what is left still fails.
fn shorten(run: &impl Fn(&[Choice]) -> Result<(), String>, mut choices: Vec<Choice>) -> Vec<Choice> {
    let mut size = choices.len() / 2;
    while size > 0 {
        let mut at = 0;
        let mut smaller = false;
        while at < choices.len() {
            let mut without = choices.clone();
            without.drain(at..(at + size).min(choices.len()));
            if outcome(run, &without).is_err() {
                choices = without;
                smaller = true;
            } else {
                at += size;
            }
        }
        if !smaller || size > 1 {
            size /= 2;
        }
    }
    choices
}
