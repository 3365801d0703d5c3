//! Which jobs names mean, by this node's own state: nearly every call asks, and jobs come and go seldom.

use std::collections::HashMap;

use parking_lot::RwLock;
use tripod_state::ids::JobId;

use crate::backend::{Replica, look};
use crate::hub::Watch;

/// Names that are remembered at most: more than there can be jobs at a time.
const NAMES_MAX: usize = 256;

/// Remembers names until a job comes or goes. Apply holds the state's lock for hundreds of commands at a time, and whoever
/// looked a name up there would wait for that.
pub(crate) struct JobNames {
    /// Of all jobs.
    jobs: Watch,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// How often jobs had come or gone when these were found.
    changes: u64,
    names: HashMap<String, JobId>,
}

impl JobNames {
    /// None yet. `jobs` is told when a job comes or goes.
    pub(crate) fn new(jobs: Watch) -> Self {
        Self { jobs, known: RwLock::default() }
    }

    /// The job of that name, if this node knows one. What was just applied may be told a moment later than the state has it.
    pub(crate) fn find(&self, replica: &dyn Replica, name: &str) -> Option<JobId> {
        // Before the state is looked at: what changes later makes a name found there an old one.
        let changes = self.jobs.rings();
        let known = self.known.read();
        if known.changes == changes
            && let Some(job) = known.names.get(name)
        {
            return Some(*job);
        }
        drop(known);
        let job = look(replica, |state| state.job_named(name))?;
        self.note(changes, name, job);
        Some(job)
    }

    fn note(&self, changes: u64, name: &str, job: JobId) {
        let mut known = self.known.write();
        if known.changes < changes || known.names.len() >= NAMES_MAX {
            *known = Known { changes, names: HashMap::new() };
        }
        if known.changes == changes {
            known.names.insert(name.to_owned(), job);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tripod_state::ids::ServiceIncarnation;
    use tripod_state::{Command, Effect, Envelope, State, Topic, job};

    use super::*;
    use crate::hub::Hub;
    use crate::memory::MemoryBackend;

    /// What is applied is not told to the hub: that is up to the test.
    async fn create(backend: &MemoryBackend, name: &str) -> JobId {
        let spec = job::Spec::of_tasks(1);
        let command = job::Command::Create { name: name.into(), spec, service: ServiceIncarnation(1) };
        let envelope = Envelope { stamp: None, command: Command::Job(command) };
        backend.propose(envelope).await.unwrap().reply.unwrap();
        backend.state().job_named(name).unwrap()
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_until_a_job_comes_or_goes() {
        let (hub, backend) = (Arc::new(Hub::default()), MemoryBackend::new());
        let names = JobNames::new(hub.watch(Topic::Jobs));
        assert_eq!(names.find(backend.as_ref(), "a"), None);
        let first = create(&backend, "a").await;
        assert_eq!(names.find(backend.as_ref(), "a"), Some(first), "that there is none is not remembered");
        backend.replace(State::default());
        assert_eq!(names.find(backend.as_ref(), "a"), Some(first), "nobody has told of it");
        hub.effects(&[Effect::JobDeleted { job: first }]);
        assert_eq!(names.find(backend.as_ref(), "a"), None);
        let other = create(&backend, "b").await;
        assert_eq!(names.find(backend.as_ref(), "b"), Some(other));
    }

    #[test]
    fn what_was_found_before_a_change_is_no_news_after_it() {
        let hub = Arc::new(Hub::default());
        let names = JobNames::new(hub.watch(Topic::Jobs));
        let before = names.jobs.rings();
        hub.wake_all();
        names.note(names.jobs.rings(), "new", JobId(2));
        names.note(before, "old", JobId(1));
        let known = names.known.read();
        assert!(known.names.contains_key("new") && !known.names.contains_key("old"));
    }

    #[test]
    fn names_are_bounded() {
        let hub = Arc::new(Hub::default());
        let names = JobNames::new(hub.watch(Topic::Jobs));
        for job in 0..2 * NAMES_MAX as u64 {
            names.note(0, &job.to_string(), JobId(job));
        }
        assert!(names.known.read().names.len() <= NAMES_MAX);
    }
}
