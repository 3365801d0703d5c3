//! A state as it was at one index, to be compared with those of the other nodes, and at which indexes there is one.
//! Every node must choose the same ones without talking about it, so they follow from the log: from the leader's time
//! as it stands there, and from the index.

use std::collections::BTreeSet;

use tripod_state::State;
use tripod_state::ids::TimeMs;

use crate::base::types::LogId;

/// Length of a period of the log's time. The first command of a period is a point of comparison.
const PERIOD_MS: u64 = 15_000;
/// Entries after which there is a point in any case: time stands still in a log whose leader's clock was
/// set back.
const ENTRIES: u64 = 1 << 20;
/// The part of one core that hashing may take is one in this many.
const CORE_SHARE: u64 = 100;
/// What hashing is taken to cost, in nanoseconds. An estimate on the slow side; nobody has measured it yet.
const NANOSECONDS_A_KEY: u64 = 1_000;
const BYTES_A_NANOSECOND: u64 = 2;

/// A state as it was at one index.
pub(crate) struct Fork {
    pub(crate) id: LogId,
    pub(crate) state: State,
    /// The voters as of that index: one set, or two during a change of membership.
    pub(crate) voters: Vec<BTreeSet<u64>>,
}

/// Whether `state`, after the entry at `index` was applied, is to be compared. `before` is its time before.
pub(crate) fn is_due(before: TimeMs, state: &State, index: u64) -> bool {
    let (from, to) = (before.0 / PERIOD_MS, state.now_ms().0 / PERIOD_MS);
    let counted = index.is_multiple_of(ENTRIES);
    if from == to && !counted {
        return false;
    }
    let stride = stride(cost_ns(state));
    from / stride != to / stride || (counted && (index / ENTRIES).is_multiple_of(stride))
}

/// About how long hashing the state takes.
fn cost_ns(state: &State) -> u64 {
    let jobs = state.jobs();
    jobs.iter().map(|job| job.keys * NANOSECONDS_A_KEY + job.key_bytes / BYTES_A_NANOSECOND).sum()
}

/// Only every so many periods is used. A power of two, so that replicas whose states differ, and so their
/// costs, still share the points of the larger stride.
fn stride(cost_ns: u64) -> u64 {
    let share_ns = PERIOD_MS * 1_000_000 / CORE_SHARE;
    cost_ns.div_ceil(share_ns).max(1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{LogIndex, ServiceIncarnation, Term};
    use tripod_state::{ApplyContext, Command, Envelope, Scope, job, kv};

    use super::*;

    /// A state whose time is this.
    fn at(now_ms: u64) -> State {
        let mut state = State::default();
        let create = job::Command::Create {
            name: "job".into(),
            spec: job::Spec::of_tasks(1),
            service: ServiceIncarnation(1),
        };
        let context = ApplyContext { index: LogIndex(1), term: Term(1), now_ms: TimeMs(now_ms) };
        let _ = state.apply(&context, Envelope { stamp: None, command: Command::Job(create) });
        state
    }

    #[test]
    fn the_first_command_of_a_period_is_a_point() {
        assert!(is_due(TimeMs(PERIOD_MS - 1), &at(PERIOD_MS), 7));
        assert!(!is_due(TimeMs(PERIOD_MS), &at(PERIOD_MS + 1), 7));
        assert!(is_due(TimeMs(PERIOD_MS), &at(9 * PERIOD_MS), 7), "after a long rest");
    }

    #[test]
    fn a_log_whose_time_stands_still_has_points_all_the_same() {
        assert!(is_due(TimeMs(PERIOD_MS), &at(PERIOD_MS), 3 * ENTRIES));
    }

    #[test]
    fn a_costly_state_is_compared_less_often_at_points_that_a_cheap_one_has_too() {
        let share_ns = PERIOD_MS * 1_000_000 / CORE_SHARE;
        assert_eq!([0, 1, share_ns].map(stride), [1, 1, 1]);
        assert_eq!(stride(share_ns + 1), 2);
        assert_eq!(stride(5 * share_ns), 8);
    }

    /// What the two constants above stand on: `cargo test --release -p tripod-raft --lib cost_of -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement, which prints and checks nothing"]
    fn the_cost_of_hashing() {
        for (keys, value_bytes) in [(1_000_000, 16), (100_000, 256), (1_000, 100_000)] {
            let mut state = at(1);
            let scope = Scope { job: state.job_named("job").unwrap(), service: None };
            for key in 0..keys {
                let insert = kv::Command::Insert {
                    scope,
                    key: format!("folder/key-{key:09}"),
                    value: vec![1; value_bytes].into(),
                    overwrite: true,
                };
                let context = ApplyContext { index: LogIndex(key + 2), term: Term(1), now_ms: TimeMs(1) };
                let _ = state.apply(&context, Envelope { stamp: None, command: Command::Kv(insert) });
            }
            let mut times: Vec<u128> = (0..5)
                .map(|_| {
                    let began = std::time::Instant::now();
                    std::hint::black_box(state.digest());
                    began.elapsed().as_nanos()
                })
                .collect();
            times.sort_unstable();
            let (measured, taken) = (times[2], cost_ns(&state));
            println!("{keys} keys of {value_bytes} B: {measured} ns, taken for {taken} ns");
        }
    }
}
