//! When each open barrier instance must end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use tripod_state::ids::{BarrierCounter, BarrierName, JobId};
use tripod_state::state::OpenBarrier;

use crate::awake::Moment;

/// One instance of a barrier.
pub(super) type Instance = (JobId, BarrierName, BarrierCounter);

/// A heap is swept of instances that ended before their time when it is this much larger than it was
/// after the last sweep.
const SWEEP_SLACK: usize = 4096;

/// The barrier timers. An instance that ends in time leaves its entry behind, which is found void
/// when it comes up, or at a sweep.
#[derive(Default)]
pub(super) struct BarrierTimers {
    heap: BinaryHeap<Reverse<(Moment, Instance)>>,
    swept_len: usize,
}

impl BarrierTimers {
    pub(super) fn arm(
        &mut self,
        job: JobId,
        barrier: BarrierName,
        counter: BarrierCounter,
        deadline: Moment,
    ) {
        self.heap.push(Reverse((deadline, (job, barrier, counter))));
    }

    /// Takes out every instance whose time is up. It may have ended long ago.
    pub(super) fn take_due(&mut self, now: Moment) -> BTreeSet<Instance> {
        let mut due = BTreeSet::new();
        while self.heap.peek().is_some_and(|Reverse((deadline, _))| *deadline <= now) {
            due.extend(self.heap.pop().map(|Reverse((_, instance))| instance));
        }
        due
    }

    /// Takes an instance back whose expiry could not be proposed.
    pub(super) fn put_back(&mut self, (job, barrier, counter): Instance, now: Moment) {
        self.arm(job, barrier, counter, now);
    }

    /// Whether so many instances came since the last sweep that one pays.
    pub(super) fn wants_sweep(&self) -> bool {
        self.heap.len() > 2 * self.swept_len + SWEEP_SLACK
    }

    /// Drops all instances that are not open.
    pub(super) fn sweep(&mut self, open: &BTreeSet<Instance>) {
        self.heap.retain(|Reverse((_, instance))| open.contains(instance));
        self.swept_len = self.heap.len();
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.swept_len = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

pub(super) fn instance(open: OpenBarrier) -> Instance {
    (open.job, open.barrier, open.counter)
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::DurationMs;

    use super::*;
    use crate::awake::Awake;

    fn named(name: &str) -> Instance {
        (JobId(1), BarrierName::from(name), BarrierCounter(0))
    }

    fn arm(timers: &mut BarrierTimers, name: &str, deadline: Moment) {
        let (job, barrier, counter) = named(name);
        timers.arm(job, barrier, counter, deadline);
    }

    #[test]
    fn gives_each_instance_once_when_its_time_is_up() {
        let start = Awake::default().now();
        let mut timers = BarrierTimers::default();
        arm(&mut timers, "b", start.plus(DurationMs(20)));
        arm(&mut timers, "a", start.plus(DurationMs(10)));

        assert_eq!(timers.take_due(start.plus(DurationMs(9))), BTreeSet::new());
        assert_eq!(timers.take_due(start.plus(DurationMs(10))), BTreeSet::from([named("a")]));
        assert_eq!(timers.take_due(start.plus(DurationMs(99))), BTreeSet::from([named("b")]));
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn a_sweep_keeps_open_instances_only() {
        let start = Awake::default().now();
        let mut timers = BarrierTimers::default();
        for number in 0..=SWEEP_SLACK {
            arm(&mut timers, &number.to_string(), start.plus(DurationMs(10)));
        }
        assert!(timers.wants_sweep());

        timers.sweep(&BTreeSet::from([named("7")]));

        assert!(!timers.wants_sweep());
        assert_eq!(timers.take_due(start.plus(DurationMs(10))), BTreeSet::from([named("7")]));
    }
}
