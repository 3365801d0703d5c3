//! How the calls of an attack ended, counted.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tripod_proto::code::Code;

/// What was still under way when an attack's time was over.
pub(super) const GIVEN_UP: &str = "given up";
/// What was answered as if it had been asked by anybody.
pub(super) const OK: &str = "ok";

/// Metadata key of `tripod.v1`'s word for a refusal.
const REASON: &str = "tripod-reason";

/// What ends an attack, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls, connections, messages.
    pub count: usize,
    pub time: Duration,
}

/// How often calls ended in which way: `ok`, a status with the code of ours that it names, the end of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, ended: impl Into<String>) {
        self.add_many(ended, 1);
    }

    /// Counts more of them.
    pub fn add_many(&mut self, ended: impl Into<String>, times: u64) {
        if times > 0 {
            *self.0.entry(ended.into()).or_default() += times;
        }
    }

    /// Counts what another attack counted.
    pub fn merge(&mut self, other: &Self) {
        for (ended, times) in &other.0 {
            self.add_many(ended.as_str(), *times);
        }
    }

    /// How many ended in any way whose name contains the text.
    #[must_use]
    pub fn of(&self, text: &str) -> u64 {
        self.0.iter().filter(|(ended, _)| ended.contains(text)).map(|(_, times)| times).sum()
    }

    /// How many were answered.
    #[must_use]
    pub fn ok(&self) -> u64 {
        self.0.get(OK).copied().unwrap_or(0)
    }

    /// How many there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        let parts: Vec<String> = self.0.iter().map(|(ended, times)| format!("{times} {ended}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// A status in a word or two: its code, and the code of ours that its text names, or `tripod.v1`'s word for the refusal.
pub(super) fn word(status: &Status) -> String {
    let reason = status.metadata().get(REASON).and_then(|reason| reason.to_str().ok());
    match (Code::find(status.message()), reason) {
        (Some(code), _) => format!("{:?} ({code})", status.code()),
        (None, Some(reason)) => format!("{:?} ({reason})", status.code()),
        (None, None) => format!("{:?}", status.code()),
    }
}

/// How a call ended.
pub(super) fn ended<T>(answer: &Result<T, Status>) -> String {
    answer.as_ref().map_or_else(word, |_| OK.to_owned())
}

/// Makes as many calls as the bounds allow, so many of them at the same time.
pub(super) async fn repeat<F: Future<Output = String>>(
    bounds: Bounds,
    at_once: usize,
    call: impl Fn(usize) -> F,
) -> Tally {
    let deadline = Instant::now() + bounds.time;
    let begun = AtomicU64::new(0);
    let calls = futures::stream::iter(0..bounds.count).map(|turn| {
        begun.fetch_add(1, Ordering::Relaxed);
        call(turn)
    });
    let mut calls = std::pin::pin!(calls.buffer_unordered(at_once));
    let mut tally = Tally::default();
    while let Ok(Some(ended)) = timeout_at(deadline, calls.next()).await {
        tally.add(ended);
    }
    tally.add_many(GIVEN_UP, begun.load(Ordering::Relaxed) - tally.total());
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_attack_ends_by_count_or_by_time_and_counts_every_call() {
        let bounds = Bounds { count: 10, time: Duration::from_secs(5) };
        let quick = repeat(bounds, 3, |turn| async move { format!("{}", turn % 2) }).await;
        assert_eq!((quick.of("0"), quick.of("1"), quick.total()), (5, 5, 10));
        let never = repeat(bounds, 3, |_| std::future::pending()).await;
        assert_eq!(never.to_string(), "3 given up");
    }

    #[test]
    fn a_status_is_named_by_its_code_and_ours() {
        let mut full = Status::resource_exhausted("T2207 saves-full: two are under way");
        assert_eq!(word(&full), "ResourceExhausted (T2207 saves-full)");
        full = Status::resource_exhausted("two are under way");
        full.metadata_mut().insert(REASON, "saves-full".parse().unwrap());
        assert_eq!(word(&full), "ResourceExhausted (saves-full)");
        assert_eq!(ended::<()>(&Err(Status::cancelled("x"))), "Cancelled");
    }
}
