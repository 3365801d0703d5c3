//! For whom a connection speaks.
//!
//! Most calls of the older dialect do not say which task makes them. What they come by does: a client registers, and sends its
//! heartbeats, by the connection on which it makes its other calls. An agent, by whose connection many clients come, passes
//! on with a call how its client registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tripod_state::ids::{Incarnation, JobId, TaskId};

/// Jobs of one connection of which it is known: a client has one.
const JOBS_MAX: usize = 16;
/// A registration that an agent passes on in the headers of other calls: names have 63 characters, and headers little room.
/// Of a longer one nodes are not told.
const REGISTRATION_BYTES_MAX: usize = 1024;

/// The tasks that have been heard on one connection, by their jobs. Cheap to clone.
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

/// How the client of an agent registered on one connection. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registered(Arc<Mutex<Option<Registration>>>);

#[derive(Debug)]
struct Registration {
    /// Which task, in the words of its client.
    task: String,
    /// As it came; `None`: several tasks did on this connection, or one with a message that is too long, and nobody knows whose
    /// a call is.
    message: Option<Bytes>,
}

impl Registered {
    pub(crate) fn note(&self, task: String, message: Bytes) {
        let mut known = self.0.lock();
        let is_alone = known.as_ref().is_none_or(|known| known.message.is_some() && known.task == task);
        let is_kept = is_alone && message.len() <= REGISTRATION_BYTES_MAX;
        *known = Some(if is_kept {
            Registration { task, message: Some(message) }
        } else {
            Registration { task: String::new(), message: None }
        });
    }

    pub(crate) fn get(&self) -> Option<Bytes> {
        self.0.lock().as_ref()?.message.clone()
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
    fn an_agent_knows_how_the_only_client_of_a_connection_registered_last() {
        let registered = Registered::default();
        assert_eq!(registered.get(), None);
        for life in ["first", "second"] {
            registered.note("worker/0".to_owned(), life.into());
            assert_eq!(registered.get(), Some(life.into()));
        }
        for task in ["worker/1", "worker/0", "worker/0"] {
            registered.note(task.to_owned(), "of one of two".into());
            assert_eq!(registered.get(), None);
        }
    }

    #[test]
    fn an_agent_keeps_no_registration_that_is_longer_than_headers_have_room_for() {
        let registered = Registered::default();
        let of = |length| Bytes::from(vec![7; length]);
        registered.note("worker/0".to_owned(), of(REGISTRATION_BYTES_MAX));
        assert!(registered.get().is_some());
        registered.note("worker/0".to_owned(), of(REGISTRATION_BYTES_MAX + 1));
        assert_eq!(registered.get(), None);
        assert!(registered.0.lock().as_ref().is_some_and(|known| known.task.is_empty()));
    }

    #[test]
    fn who_registers_in_ever_more_jobs_is_known_in_no_more_than_that() {
        let speakers = Speakers::default();
        let many = JOBS_MAX as u64;
        (0..=many).for_each(|job| speakers.heard(JobId(job), TaskId(0), Incarnation(7)));
        assert!(speakers.of(JobId(many - 1)).is_some() && speakers.of(JobId(many)).is_none());
    }
}
