//! The durations of the last minute.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{self, BOUNDS, HistogramView};

/// Seconds of one slice.
const SLICE_SECONDS: u64 = 10;
/// Slices that are told: those that are over, and the one at hand.
const TOLD: u64 = 6;
/// One more than is told, so that the one that is emptied next is read by nobody.
const SLICES: usize = 7;

/// Counts durations, and forgets them after a minute. One thread records; anybody may look.
#[derive(Debug)]
pub(super) struct Recent {
    slices: [Slice; SLICES],
}

#[derive(Debug)]
struct Slice {
    /// Which ten seconds these are, from 1; 0: none yet.
    number: AtomicU64,
    buckets: [AtomicU64; BOUNDS + 1],
}

impl Default for Recent {
    fn default() -> Self {
        let slice =
            || Slice { number: AtomicU64::new(0), buckets: [const { AtomicU64::new(0) }; BOUNDS + 1] };
        Self { slices: std::array::from_fn(|_| slice()) }
    }
}

/// Which slice a moment is in.
fn number(now_ns: u64) -> u64 {
    now_ns / (SLICE_SECONDS * 1_000_000_000) + 1
}

impl Recent {
    /// Counts a duration that ended at `now_ns`.
    pub(super) fn record(&self, now_ns: u64, nanos: u64) {
        let number = number(now_ns);
        let slice = &self.slices[usize::try_from(number % SLICES as u64).expect("a small number")];
        if slice.number.load(Ordering::Relaxed) != number {
            slice.buckets.iter().for_each(|bucket| bucket.store(0, Ordering::Relaxed));
            slice.number.store(number, Ordering::Relaxed);
        }
        slice.buckets[histogram::bucket(nanos)].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted in the minute before `now_ns`, or in a little less.
    pub(super) fn view(&self, now_ns: u64) -> HistogramView {
        let now = number(now_ns);
        let mut sums = vec![0; BOUNDS + 1];
        for slice in &self.slices {
            let number = slice.number.load(Ordering::Relaxed);
            if number + TOLD > now && number <= now {
                for (sum, bucket) in sums.iter_mut().zip(&slice.buckets) {
                    *sum += bucket.load(Ordering::Relaxed);
                }
            }
        }
        HistogramView::of(sums)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_is_older_than_a_minute_is_forgotten() {
        let recent = Recent::default();
        assert_eq!(recent.view(0).count(), 0);
        for second in 0..30 {
            recent.record(second * SECOND, 1_000_000);
        }
        assert_eq!(recent.view(30 * SECOND).count(), 30);
        assert_eq!(recent.view(59 * SECOND).count(), 30);
        assert_eq!(recent.view(65 * SECOND).count(), 20, "the first ten seconds are over a minute old");
        recent.record(65 * SECOND, 50_000_000);
        assert_eq!(recent.view(65 * SECOND).quantile(999), Some(Duration::from_micros(57_344)));
        assert_eq!(recent.view(200 * SECOND).count(), 0);
    }

    #[test]
    fn a_slice_that_comes_again_begins_anew() {
        let recent = Recent::default();
        recent.record(0, 1);
        recent.record(70 * SECOND, 1);
        assert_eq!(recent.view(70 * SECOND).count(), 1);
    }
}
