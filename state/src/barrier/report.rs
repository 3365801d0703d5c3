//! Barriers as people are shown them: who has come, for whom they wait, and which failed lately.

use imbl::Vector;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::{BarrierCounter, BarrierName, DurationMs, TaskId, TimeMs};
use crate::limits::{BARRIER_NAME_BYTES_MAX, BARRIER_TASKS_NAMED, FAILED_BARRIERS_KEPT};
use crate::runtime;

/// An instance of a barrier at which tasks wait, or waited until it failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Report {
    pub what: What,
    pub counter: BarrierCounter,
    /// `None` if that is not known.
    pub opened: Option<TimeMs>,
    /// Its whole length. It passes later than that after `opened` when the leader changes, for every timer
    /// begins again then. `None` if every caller waits as long as it likes.
    pub timeout: Option<DurationMs>,
    pub arrived: Party,
    pub missing: Party,
    /// `None` while it is open.
    pub failure: Option<Failure>,
}

/// For what the tasks wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum What {
    /// For everybody to register, or to connect.
    Registration,
    /// For everybody to leave.
    Shutdown,
    /// For everybody's devices.
    Devices,
    /// For a barrier that their program calls.
    Called(BarrierName),
    /// The same, in the runtime of older clients.
    CalledInRuntime(runtime::BarrierId),
}

/// Some of a barrier's members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Party {
    pub count: u32,
    /// The lowest of them, ascending, [`BARRIER_TASKS_NAMED`] at most. Fewer than `count` also where it is
    /// not known who they are.
    pub first: Vec<TaskId>,
}

/// An open barrier with everybody who has come and everybody who has not, both in ascending order; of the runtime of older
/// clients only those whom the report names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathering {
    pub report: Report,
    pub arrived: Vec<TaskId>,
    pub missing: Vec<TaskId>,
}

/// The end of an instance that failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failure {
    pub at: TimeMs,
    pub fault: Fault,
}

/// The last instances that failed while somebody waited, the newest first. An instance itself forgets at its
/// end who waited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Failed {
    reports: Vector<Report>,
}

impl Party {
    /// Those of `all` who came, and the others. Both ascend, and nobody came who is not one of all.
    pub(crate) fn split(
        all: impl Iterator<Item = TaskId>,
        came: impl Iterator<Item = TaskId>,
    ) -> (Self, Self) {
        let mut came = came.peekable();
        let (mut arrived, mut missing) = (Self::default(), Self::default());
        for task in all {
            if came.next_if_eq(&task).is_some() {
                arrived.add(task);
            } else {
                missing.add(task);
            }
        }
        (arrived, missing)
    }

    /// So many, of whom nothing else is known.
    pub(crate) fn nameless(count: u32) -> Self {
        Self { count, first: Vec::new() }
    }

    fn add(&mut self, task: TaskId) {
        self.count += 1;
        if self.first.len() < BARRIER_TASKS_NAMED {
            self.first.push(task);
        }
    }
}

impl Failed {
    /// Keeps a report, and forgets the oldest one if there is no more room. That nobody waited is not kept.
    pub(crate) fn keep(&mut self, open: Report, at: TimeMs, fault: &Fault) {
        if open.arrived.count == 0 {
            return;
        }
        self.reports.push_front(Report { failure: Some(Failure { at, fault: *fault.cited() }), ..open });
        self.reports.truncate(FAILED_BARRIERS_KEPT);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter()
    }

    /// What they take, roughly: the most that so many can.
    pub(crate) fn bytes(&self) -> u64 {
        const REPORT_BYTES: u64 = (2 * BARRIER_NAME_BYTES_MAX + 4 * BARRIER_TASKS_NAMED * 2) as u64;
        REPORT_BYTES.saturating_mul(self.reports.len() as u64)
    }

    /// Puts back those of a snapshot; `None` if they are too many or none of them has failed.
    pub(crate) fn restore(reports: Vec<Report>) -> Option<Self> {
        let fits = reports.len() <= FAILED_BARRIERS_KEPT
            && reports.iter().all(|report| report.failure.is_some() && report.arrived.count > 0);
        fits.then(|| Self { reports: reports.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(ids: impl IntoIterator<Item = i32>) -> impl Iterator<Item = TaskId> {
        ids.into_iter().map(TaskId)
    }

    #[test]
    fn everybody_has_come_or_is_missing() {
        let (arrived, missing) = Party::split(tasks(0..5), tasks([1, 2, 4]));
        assert_eq!((arrived.count, arrived.first), (3, tasks([1, 2, 4]).collect()));
        assert_eq!((missing.count, missing.first), (2, tasks([0, 3]).collect()));
    }

    #[test]
    fn of_many_only_the_first_are_named() {
        let (arrived, missing) = Party::split(tasks(0..10_000), tasks((0..10_000).filter(|id| *id != 9_000)));
        assert_eq!((arrived.count, arrived.first.len()), (9_999, BARRIER_TASKS_NAMED));
        assert_eq!((missing.count, missing.first), (1, vec![TaskId(9_000)]));
    }

    #[test]
    fn the_newest_failures_are_kept_and_those_that_met_nobody_are_not() {
        let report = |counter: i64, arrived: u32| Report {
            what: What::Shutdown,
            counter: BarrierCounter(counter),
            opened: None,
            timeout: None,
            arrived: Party::nameless(arrived),
            missing: Party::nameless(1),
            failure: None,
        };
        let mut failed = Failed::default();
        let fault = Fault::PollerLeft;
        for counter in 0..20 {
            failed.keep(report(counter, 1), TimeMs(5), &fault);
            failed.keep(report(100, 0), TimeMs(5), &fault);
        }
        let counters: Vec<i64> = failed.iter().map(|report| report.counter.0).collect();
        assert_eq!(counters, [19, 18, 17, 16, 15, 14, 13, 12]);
        let reports: Vec<Report> = failed.iter().cloned().collect();
        assert_eq!(Failed::restore(reports.clone()), Some(failed));
        assert_eq!(Failed::restore([reports.clone(), reports].concat()), None);
        assert_eq!(Failed::restore(vec![report(1, 1)]), None, "it is open");
    }
}
