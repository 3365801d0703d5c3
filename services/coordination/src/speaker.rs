//! For whom a connection speaks.
//!
//! Most calls of the older dialect do not say which task makes them. What they come by does: a client registers, and sends its
//! heartbeats, by the connection on which it makes its other calls. An agent, by whose connection many clients come, passes
//! on with a call how its client registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tripod_state::ids::{Incarnation, JobId, TaskId};

/// Jobs of one connection of which it is known: a client has one.
const JOBS_MAX: usize = 16;

/// The tasks that have been heard on one connection, by their jobs, as its [`tripod_port::ConnectionCalls`] keeps them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Speakers(Arc<Mutex<BTreeMap<JobId, Speaker>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    One(TaskId, Incarnation),
    /// Then nobody knows whose a call is.
    Several,
}

impl Speakers {
    /// A life of a task has registered, or sent a heartbeat.
    pub(crate) fn heard(&self, job: JobId, task: TaskId, incarnation: Incarnation) {
        let mut speakers = self.0.lock();
        let is_full = speakers.len() >= JOBS_MAX;
        match speakers.get_mut(&job) {
            Some(Speaker::One(known, of)) if *known == task => *of = incarnation,
            Some(speaker) => *speaker = Speaker::Several,
            None if is_full => {}
            None => drop(speakers.insert(job, Speaker::One(task, incarnation))),
        }
    }

    /// The one task of a job that is heard here, in its newest life.
    pub(crate) fn of(&self, job: JobId) -> Option<(TaskId, Incarnation)> {
        match self.0.lock().get(&job)? {
            Speaker::One(task, incarnation) => Some((*task, *incarnation)),
            Speaker::Several => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(1);

    #[test]
    fn a_connection_speaks_for_the_newest_life_of_its_only_task() {
        let speakers = Speakers::default();
        assert_eq!(speakers.of(JOB), None);
        speakers.heard(JOB, TaskId(0), Incarnation(7));
        speakers.heard(JOB, TaskId(0), Incarnation(8));
        assert_eq!(speakers.of(JOB), Some((TaskId(0), Incarnation(8))));
        speakers.heard(JobId(2), TaskId(5), Incarnation(9));
        assert_eq!(speakers.of(JobId(2)), Some((TaskId(5), Incarnation(9))));
        speakers.heard(JOB, TaskId(1), Incarnation(8));
        speakers.heard(JOB, TaskId(1), Incarnation(8));
        assert_eq!(speakers.of(JOB), None, "two tasks share it");
    }

    #[test]
    fn who_registers_in_ever_more_jobs_is_known_in_no_more_than_that() {
        let speakers = Speakers::default();
        let many = JOBS_MAX as u64;
        (0..=many).for_each(|job| speakers.heard(JobId(job), TaskId(0), Incarnation(7)));
        assert!(speakers.of(JobId(many - 1)).is_some() && speakers.of(JobId(many)).is_none());
    }
}
