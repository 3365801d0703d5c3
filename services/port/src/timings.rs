//! Durations counted by size, in a few words of memory: for what is counted once for each kind of call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds that there are: 64 µs, and each four times the one before, up to 67 s. Behind the last is one more bucket.
const BOUNDS: usize = 11;
/// The lowest of them.
const LOWEST_US: u64 = 64;

/// Durations by size. Counting costs two additions, without a lock.
#[derive(Debug, Default)]
pub struct Timings {
    buckets: [AtomicU64; BOUNDS + 1],
    sum_us: AtomicU64,
}

/// What was counted until one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimingsView {
    buckets: [u64; BOUNDS + 1],
    /// All of them together.
    pub sum: Duration,
}

impl Timings {
    /// Counts one.
    pub fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(micros)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    /// What has been counted.
    #[must_use]
    pub fn view(&self) -> TimingsView {
        let buckets = std::array::from_fn(|place| self.buckets[place].load(Ordering::Relaxed));
        TimingsView { buckets, sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)) }
    }
}

impl TimingsView {
    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Each upper bound, and how many were not longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.buckets[..BOUNDS].iter().enumerate().scan(0, |below, (place, count)| {
            *below += count;
            Some((Duration::from_micros(LOWEST_US << (2 * place)), *below))
        })
    }
}

fn bucket(micros: u64) -> usize {
    let times = micros.saturating_sub(1) / LOWEST_US;
    if times == 0 {
        return 0;
    }
    (times.ilog2() as usize / 2 + 1).min(BOUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_at_the_first_bound_that_is_not_below_it() {
        for (micros, place) in [
            (0, 0),
            (64, 0),
            (65, 1),
            (256, 1),
            (257, 2),
            (1_024, 2),
            (67_108_864, 10),
            (67_108_865, 11),
            (u64::MAX, 11),
        ] {
            assert_eq!(bucket(micros), place, "{micros}");
        }
    }

    #[test]
    fn what_is_counted_adds_up() {
        let timings = Timings::default();
        for micros in [10, 65, 300, 100_000_000] {
            timings.record(Duration::from_micros(micros));
        }
        let view = timings.view();
        assert_eq!((view.count(), view.sum), (4, Duration::from_micros(100_000_375)));
        let bounds: Vec<(u128, u64)> =
            view.cumulative().map(|(bound, count)| (bound.as_micros(), count)).collect();
        assert_eq!(bounds[..3], [(64, 1), (256, 2), (1_024, 3)]);
        assert_eq!(bounds[BOUNDS - 1], (67_108_864, 3));
    }
}
