//! What became of calls, by what was called, and how long they took.
//!
//! Everybody's paths are looked up in a table that is made once: what is no RPC is counted as one, so no client makes
//! another counter.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::HeaderMap;
use tonic::Status;
use tripod_gate::Rpc;
use tripod_proto::metadata;

use crate::timings::{Timings, TimingsView};

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// It was answered; or its answers began to come, where there are several.
    Ok,
    /// By its protocol's rules, which a client may expect.
    Refused,
    /// For this node's or the cluster's own trouble.
    Outage,
    /// Its client was gone, or had waited for as long as it wanted to.
    Dropped,
}

/// Counts calls on all ports of a process. Clones count together; the default counts nothing.
#[derive(Debug, Clone, Default)]
pub struct CallTally(Option<Arc<Counters>>);

/// What has been counted of one RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    /// `None`: all paths that are no RPC.
    pub rpc: Option<Rpc>,
    /// In the order of [`CallOutcome::ALL`].
    pub outcomes: [u64; CallOutcome::ALL.len()],
    /// Of those that were answered.
    pub took: TimingsView,
}

/// A place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallNumber(u16);

#[derive(Debug)]
struct Counters {
    numbers: HashMap<String, CallNumber>,
    /// The first is that of whatever is no RPC.
    counters: Vec<Counter>,
}

#[derive(Debug, Default)]
struct Counter {
    outcomes: [AtomicU64; CallOutcome::ALL.len()],
    took: Timings,
}

/// A call that has begun. It counts as dropped if it ends without an answer.
#[derive(Debug)]
pub(crate) struct CountedCall(Option<(Arc<Counters>, CallNumber, Instant)>);

impl CallOutcome {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Refused, Self::Outage, Self::Dropped];

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Outage => "outage",
            Self::Dropped => "dropped",
        }
    }

    /// Of an answer with these headers. Errors are told there, before any message.
    fn of(headers: &HeaderMap) -> Self {
        match headers.get(Status::GRPC_STATUS) {
            None => Self::Ok,
            Some(code) if code == "0" => Self::Ok,
            Some(_) if headers.contains_key(metadata::OUTAGE) => Self::Outage,
            Some(_) => Self::Refused,
        }
    }
}

impl CallTally {
    /// One that counts.
    #[must_use]
    pub fn new() -> Self {
        let paths = Rpc::ALL.iter().map(|rpc| rpc.path());
        let numbered = |(path, number)| (path, CallNumber(number));
        let numbers = paths.zip(1..).map(numbered).collect();
        let counters = std::iter::repeat_with(Counter::default).take(1 + Rpc::ALL.len()).collect();
        Self(Some(Arc::new(Counters { numbers, counters })))
    }

    /// What has been counted of each RPC that was ever called.
    #[must_use]
    pub fn counts(&self) -> Vec<CallCount> {
        let Some(counters) = &self.0 else { return Vec::new() };
        let rpcs = [None].into_iter().chain(Rpc::ALL.iter().copied().map(Some));
        let count = |(rpc, counter): (_, &Counter)| {
            let outcomes = std::array::from_fn(|place| counter.outcomes[place].load(Ordering::Relaxed));
            CallCount { rpc, outcomes, took: counter.took.view() }
        };
        let all = rpcs.zip(&counters.counters).map(count);
        all.filter(|count| count.outcomes.iter().any(|count| *count > 0)).collect()
    }

    /// Where calls of a path are counted.
    pub(crate) fn number(&self, path: &str) -> CallNumber {
        let found = self.0.as_ref().and_then(|counters| counters.numbers.get(path));
        found.copied().unwrap_or_default()
    }

    /// A call begins.
    pub(crate) fn begin(&self, number: CallNumber) -> CountedCall {
        CountedCall(self.0.as_ref().map(|counters| (Arc::clone(counters), number, Instant::now())))
    }
}

impl CountedCall {
    /// It is answered, with these headers.
    pub(crate) fn answered(&mut self, headers: &HeaderMap) {
        let Some((counters, number, began)) = self.0.take() else { return };
        counters.count(number, CallOutcome::of(headers)).took.record(began.elapsed());
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        if let Some((counters, number, _)) = self.0.take() {
            counters.count(number, CallOutcome::Dropped);
        }
    }
}

impl Counters {
    fn count(&self, number: CallNumber, outcome: CallOutcome) -> &Counter {
        let counter = &self.counters[usize::from(number.0)];
        counter.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: &str = "/xla.coordination.CoordinationService/Barrier";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn each_call_is_counted_once_by_what_became_of_it() {
        let tally = CallTally::new();
        for answer in [
            Some(headers(&[])),
            Some(headers(&[("grpc-status", "0")])),
            Some(headers(&[("grpc-status", "5")])),
            Some(headers(&[("grpc-status", "14"), (metadata::OUTAGE, metadata::OUTAGE_NO_LEADER)])),
            None,
        ] {
            let mut call = tally.begin(tally.number(BARRIER));
            if let Some(headers) = answer {
                call.answered(&headers);
            }
        }
        let [barrier] = tally.counts().try_into().expect("one RPC was called");
        assert_eq!(barrier.rpc.expect("it is one").path(), BARRIER);
        assert_eq!(barrier.outcomes, [2, 1, 1, 1]);
        assert_eq!(barrier.took.count(), 4, "who was dropped was not answered");
        assert!(CallOutcome::ALL.into_iter().enumerate().all(|(place, outcome)| outcome as usize == place));
    }

    #[test]
    fn paths_that_are_no_rpc_are_counted_together() {
        let tally = CallTally::new();
        for path in ["/a.B/C", "", "/xla.coordination.CoordinationService/Barrier/x"] {
            drop(tally.begin(tally.number(path)));
        }
        let counts = tally.counts();
        assert_eq!((counts.len(), counts[0].rpc, counts[0].outcomes), (1, None, [0, 0, 0, 3]));
        let none = CallTally::default();
        drop(none.begin(none.number(BARRIER)));
        assert_eq!(none.counts(), []);
    }
}
