//! Durations, counted by size.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Powers of two that are told apart, from 4 µs on: the last bound is half a minute.
const OCTAVES: usize = 23;
/// Bounds within a power of two.
const PARTS: usize = 4;
/// How many bounds there are. Behind the last is one more bucket, without a bound.
pub(super) const BOUNDS: usize = OCTAVES * PARTS;

/// The upper bounds of the buckets in microseconds, that one included: 4, 5, 6, 7, 8, 10, 12, 14, 16, … A
/// value that is read from them is too large by a quarter at most.
const BOUNDS_US: [u64; BOUNDS] = bounds_us();

const fn bounds_us() -> [u64; BOUNDS] {
    let mut bounds = [0; BOUNDS];
    let mut place = 0;
    while place < BOUNDS {
        bounds[place] = ((PARTS + place % PARTS) as u64) << (place / PARTS);
        place += 1;
    }
    bounds
}

/// The bucket of a duration: seven comparisons.
pub(super) fn bucket(nanos: u64) -> usize {
    let micros = nanos.div_ceil(1000);
    BOUNDS_US.partition_point(|bound| *bound < micros)
}

/// Counts durations. Recording costs two additions, and never waits.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BOUNDS + 1], sum_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts one.
    pub(crate) fn record(&self, nanos: u64) {
        self.buckets[bucket(nanos)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    /// What has been counted so far.
    pub(crate) fn view(&self) -> HistogramView {
        HistogramView {
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum: Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)),
        }
    }
}

/// Counted durations as they were at one moment. The default has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistogramView {
    buckets: Vec<u64>,
    /// Of all durations.
    pub sum: Duration,
}

impl HistogramView {
    pub(super) fn of(buckets: Vec<u64>) -> Self {
        Self { buckets, sum: Duration::ZERO }
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// For each power of two from 4 µs to 17 s, in that order, how many were not longer.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(Duration, u64)> {
        let mut sum = 0;
        let mut told = Vec::with_capacity(OCTAVES);
        for (place, bound) in BOUNDS_US.iter().enumerate() {
            sum += self.buckets.get(place).copied().unwrap_or(0);
            if place % PARTS == 0 {
                told.push((Duration::from_micros(*bound), sum));
            }
        }
        told
    }

    /// The duration that `per_mille` of a thousand do not exceed, rounded up by a quarter at most. `None` if
    /// there was none, or if it is longer than half a minute.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Option<Duration> {
        let wanted = (self.count() * per_mille).div_ceil(1000).max(1);
        let mut sum = 0;
        let place = self.buckets.iter().position(|count| {
            sum += count;
            sum >= wanted
        })?;
        BOUNDS_US.get(place).map(|bound| Duration::from_micros(*bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_and_a_value_is_in_the_first_bucket_that_holds_it() {
        assert!(BOUNDS_US.is_sorted_by(|one, next| one < next));
        assert_eq!(BOUNDS_US[..9], [4, 5, 6, 7, 8, 10, 12, 14, 16]);
        assert_eq!(BOUNDS_US[BOUNDS - 1], 29_360_128);
        for (nanos, bound_us) in [(0, 4), (4000, 4), (4001, 5), (1_000_000, 1024), (1_024_001, 1280)] {
            assert_eq!(BOUNDS_US[bucket(nanos)], bound_us, "{nanos} ns");
        }
        assert_eq!(bucket(u64::MAX), BOUNDS);
    }

    #[test]
    fn what_is_told_is_what_was_counted() {
        let histogram = Histogram::default();
        (0..990).for_each(|_| histogram.record(100_000));
        (0..9).for_each(|_| histogram.record(8_000_000));
        histogram.record(60_000_000_000);
        let view = histogram.view();
        assert_eq!(view.count(), 1000);
        assert_eq!(view.sum, Duration::from_millis(99 + 72 + 60_000));
        assert_eq!(view.quantile(500), Some(Duration::from_micros(112)));
        assert_eq!(view.quantile(990), Some(Duration::from_micros(112)));
        assert_eq!(view.quantile(999), Some(Duration::from_micros(8192)));
        assert_eq!(view.quantile(1000), None, "longer than any bound");
        let cumulative = view.cumulative();
        assert_eq!(cumulative.len(), OCTAVES);
        let at = |micros| cumulative.iter().find(|(bound, _)| bound.as_micros() == micros).unwrap().1;
        assert_eq!((at(64), at(128), at(8192), at(16_777_216)), (0, 990, 999, 999));
        assert_eq!(HistogramView::default().quantile(500), None);
    }
}
