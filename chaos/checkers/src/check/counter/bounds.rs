//! Between which bounds a counter must lie, for any period, from sums over sorted increments.

use super::increment::Increment;
use crate::history::Micros;

/// The sums of one counter. Wide, because sums of 64-bit numbers need not have 64 bits.
pub(super) struct Bounds {
    /// What increments that may have begun by each moment can add at most and at least (below zero), in all.
    possible: Sums,
    /// What changes about that when it is known that they counted.
    certain: Sums,
}

/// Running sums by moment.
#[derive(Default)]
struct Sums {
    moments: Vec<Micros>,
    totals: Vec<(i128, i128)>,
}

impl Bounds {
    pub(super) fn of(increments: &[Increment<'_>]) -> Self {
        let possible = increments.iter().map(|increment| (increment.from, uncertain(increment)));
        let certain = increments.iter().filter_map(|increment| {
            let ((low, high), (sure_low, sure_high)) = (uncertain(increment), counted(increment));
            Some((increment.sure?, (sure_low - low, sure_high - high)))
        });
        Self { possible: Sums::of(possible.collect()), certain: Sums::of(certain.collect()) }
    }

    /// Between which two values the counter was at every moment from `from` until `until`, right after `own`
    /// if it was an increment that told it.
    pub(super) fn at(&self, from: Micros, until: Micros, own: Option<&Increment<'_>>) -> (i128, i128) {
        // Begun by the end, and known to have counted before the beginning.
        let possible = self.possible.until(until, true);
        let certain = self.certain.until(from, false);
        let (mut low, mut high) = (possible.0 + certain.0, possible.1 + certain.1);
        if let Some(own) = own {
            let ((maybe_low, maybe_high), (sure_low, sure_high)) = (uncertain(own), counted(own));
            low += sure_low - maybe_low;
            high += sure_high - maybe_high;
        }
        (low, high)
    }
}

impl Sums {
    fn of(mut parts: Vec<(Micros, (i128, i128))>) -> Self {
        parts.sort_unstable();
        let mut sums = Self::default();
        let mut total = (0, 0);
        for (moment, (low, high)) in parts {
            total = (total.0 + low, total.1 + high);
            sums.moments.push(moment);
            sums.totals.push(total);
        }
        sums
    }

    /// The sum of everything before `moment`, or also at it.
    fn until(&self, moment: Micros, inclusive: bool) -> (i128, i128) {
        let count = self.moments.partition_point(|other| *other < moment || (inclusive && *other == moment));
        count.checked_sub(1).map_or((0, 0), |last| self.totals[last])
    }
}

/// What an increment adds if nobody knows whether it counted.
fn uncertain(increment: &Increment<'_>) -> (i128, i128) {
    let most = i128::from(increment.by) * i128::from(increment.times_max);
    (most.min(0), most.max(0))
}

/// What it adds if it counted once at least.
fn counted(increment: &Increment<'_>) -> (i128, i128) {
    let once = i128::from(increment.by);
    let more = once * i128::from(increment.times_max.max(1) - 1);
    (once + more.min(0), once + more.max(0))
}
