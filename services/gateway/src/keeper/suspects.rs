//! Which tasks have missed a beat, so that the others can be told of their end without delay.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tripod_state::ids::{JobId, TaskId};

use crate::awake::Moment;

/// The overdue tasks of each job and when their time is up. Most jobs have none and cost nothing.
#[derive(Default)]
pub(super) struct Suspects {
    jobs: HashMap<JobId, Overdue>,
}

/// The overdue tasks of one job; never empty.
#[derive(Default)]
struct Overdue {
    deadlines: BTreeMap<TaskId, Moment>,
    soonest: BTreeSet<(Moment, TaskId)>,
}

impl Suspects {
    /// Notes a task, or its new deadline.
    pub(super) fn add(&mut self, job: JobId, task: TaskId, deadline: Moment) {
        let overdue = self.jobs.entry(job).or_default();
        if let Some(earlier) = overdue.deadlines.insert(task, deadline) {
            overdue.soonest.remove(&(earlier, task));
        }
        overdue.soonest.insert((deadline, task));
    }

    pub(super) fn remove(&mut self, job: JobId, task: TaskId) {
        let Some(overdue) = self.jobs.get_mut(&job) else { return };
        if let Some(deadline) = overdue.deadlines.remove(&task) {
            overdue.soonest.remove(&(deadline, task));
        }
        if overdue.deadlines.is_empty() {
            self.jobs.remove(&job);
        }
    }

    /// When the time of the first overdue task of the job is up.
    pub(super) fn soonest(&self, job: JobId) -> Option<Moment> {
        self.jobs.get(&job)?.soonest.first().map(|(deadline, _)| *deadline)
    }

    pub(super) fn forget_job(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::DurationMs;

    use super::*;
    use crate::awake::Awake;

    #[tokio::test(start_paused = true)]
    async fn the_soonest_of_the_job_counts_and_only_while_it_is_there() {
        let start = Awake::default().now();
        let at = |after| start.plus(DurationMs(after));
        let mut suspects = Suspects::default();
        suspects.add(JobId(1), TaskId(0), at(30));
        suspects.add(JobId(1), TaskId(1), at(20));
        suspects.add(JobId(2), TaskId(2), at(10));
        assert_eq!(suspects.soonest(JobId(1)), Some(at(20)));

        suspects.add(JobId(1), TaskId(1), at(40));
        assert_eq!(suspects.soonest(JobId(1)), Some(at(30)), "a moved deadline leaves no trace");

        suspects.remove(JobId(1), TaskId(0));
        suspects.remove(JobId(1), TaskId(1));
        suspects.remove(JobId(1), TaskId(1));
        assert_eq!(suspects.soonest(JobId(1)), None);
        assert!(!suspects.jobs.contains_key(&JobId(1)));

        suspects.forget_job(JobId(2));
        assert_eq!(suspects.soonest(JobId(2)), None);
    }
}
