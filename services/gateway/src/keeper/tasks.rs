//! When each connected task was last heard, and which have been silent for too long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tripod_state::ids::{Incarnation, JobId, TaskId};

use super::awake::Moment;

/// One life of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Connected {
    pub(super) job: JobId,
    pub(super) task: TaskId,
    pub(super) incarnation: Incarnation,
}

/// The silent tasks of each job, in ascending order.
pub(super) type Silent = BTreeMap<JobId, Vec<(TaskId, Incarnation)>>;

/// The heartbeat timers. A beat only moves a deadline; the heap learns of it when the old deadline
/// comes up, so that a beat costs no heap operation.
#[derive(Default)]
pub(super) struct TaskTimers {
    armed: HashMap<(JobId, TaskId), Armed>,
    /// One entry an armed task, keyed by a deadline that may since have moved; entries of another
    /// generation are void.
    heap: BinaryHeap<Reverse<(Moment, Connected, u64)>>,
    generation: u64,
}

struct Armed {
    incarnation: Incarnation,
    deadline: Moment,
    /// Which entry of the heap is this task's.
    generation: u64,
}

impl TaskTimers {
    /// Starts a task's timer, in place of any that it has.
    pub(super) fn arm(&mut self, who: Connected, deadline: Moment) {
        self.generation += 1;
        let generation = self.generation;
        let armed = Armed { incarnation: who.incarnation, deadline, generation };
        self.armed.insert((who.job, who.task), armed);
        self.heap.push(Reverse((deadline, who, generation)));
    }

    /// A sign of life: the task has until `deadline`, or longer if it already had.
    pub(super) fn heard(&mut self, who: Connected, deadline: Moment) {
        match self.armed.get_mut(&(who.job, who.task)) {
            Some(armed) if armed.incarnation == who.incarnation => {
                armed.deadline = armed.deadline.max(deadline);
            }
            // The state knows this life of the task, so its effect was missed or is still to come.
            _ => self.arm(who, deadline),
        }
    }

    /// Takes out every task whose time is up.
    pub(super) fn take_silent(&mut self, now: Moment) -> Silent {
        let mut silent = Silent::new();
        while let Some(&Reverse((due, who, generation))) = self.heap.peek() {
            if due > now {
                break;
            }
            self.heap.pop();
            let Some(armed) = self.armed.get(&(who.job, who.task)) else { continue };
            if armed.generation != generation {
                continue;
            }
            if armed.deadline > now {
                self.heap.push(Reverse((armed.deadline, who, generation)));
                continue;
            }
            self.armed.remove(&(who.job, who.task));
            silent.entry(who.job).or_default().push((who.task, who.incarnation));
        }
        for tasks in silent.values_mut() {
            tasks.sort_unstable();
        }
        silent
    }

    /// Takes tasks back whose expiry could not be proposed: they are due again at once, unless they
    /// were armed anew meanwhile.
    pub(super) fn put_back(&mut self, job: JobId, silent: &[(TaskId, Incarnation)], now: Moment) {
        for &(task, incarnation) in silent {
            if !self.armed.contains_key(&(job, task)) {
                self.arm(Connected { job, task, incarnation }, now);
            }
        }
    }

    pub(super) fn forget_job(&mut self, job: JobId) {
        self.armed.retain(|(of, _), _| *of != job);
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
        self.heap.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.armed.len()
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::DurationMs;

    use super::super::awake::Awake;
    use super::*;

    fn who(task: i32, incarnation: u64) -> Connected {
        Connected { job: JobId(1), task: TaskId(task), incarnation: Incarnation(incarnation) }
    }

    fn silent(tasks: &[(i32, u64)]) -> Silent {
        if tasks.is_empty() {
            return Silent::new();
        }
        let tasks = tasks.iter().map(|&(task, incarnation)| (TaskId(task), Incarnation(incarnation)));
        BTreeMap::from([(JobId(1), tasks.collect())])
    }

    /// `after` milliseconds from a fixed start.
    fn at(start: Moment, after: u64) -> Moment {
        start.plus(DurationMs(after))
    }

    #[test]
    fn a_task_that_is_heard_in_time_is_never_silent() {
        let start = Awake::default().now();
        let mut timers = TaskTimers::default();
        timers.arm(who(0, 7), at(start, 1000));
        timers.arm(who(1, 8), at(start, 1000));

        timers.heard(who(0, 7), at(start, 1900));

        assert_eq!(timers.take_silent(at(start, 999)), silent(&[]));
        assert_eq!(timers.take_silent(at(start, 1000)), silent(&[(1, 8)]));
        assert_eq!(timers.take_silent(at(start, 1899)), silent(&[]));
        assert_eq!(timers.take_silent(at(start, 1900)), silent(&[(0, 7)]));
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn silent_tasks_of_one_moment_come_together_in_order() {
        let start = Awake::default().now();
        let mut timers = TaskTimers::default();
        for task in [2, 0, 1] {
            timers.arm(who(task, 7), at(start, 10 - task as u64));
        }
        assert_eq!(timers.take_silent(at(start, 10)), silent(&[(0, 7), (1, 7), (2, 7)]));
    }

    #[test]
    fn a_new_life_voids_the_timer_of_the_old_one() {
        let start = Awake::default().now();
        let mut timers = TaskTimers::default();
        timers.arm(who(0, 7), at(start, 10));
        timers.arm(who(0, 8), at(start, 20));

        assert_eq!(timers.take_silent(at(start, 15)), silent(&[]));
        assert_eq!(timers.take_silent(at(start, 20)), silent(&[(0, 8)]));
        assert_eq!(timers.take_silent(at(start, 99)), silent(&[]), "once");
    }

    #[test]
    fn a_task_that_could_not_be_expired_is_due_again() {
        let start = Awake::default().now();
        let mut timers = TaskTimers::default();
        timers.arm(who(0, 7), at(start, 10));
        let taken = timers.take_silent(at(start, 10));
        timers.put_back(JobId(1), &taken[&JobId(1)], at(start, 10));
        assert_eq!(timers.take_silent(at(start, 10)), taken);

        timers.arm(who(0, 8), at(start, 50));
        timers.put_back(JobId(1), &taken[&JobId(1)], at(start, 11));
        assert_eq!(timers.take_silent(at(start, 49)), silent(&[]), "a newer life has its own time");
    }

    #[test]
    fn a_deleted_job_has_no_timers() {
        let start = Awake::default().now();
        let mut timers = TaskTimers::default();
        timers.arm(who(0, 7), at(start, 10));
        timers.forget_job(JobId(1));
        assert_eq!(timers.take_silent(at(start, 99)), silent(&[]));
    }
}
