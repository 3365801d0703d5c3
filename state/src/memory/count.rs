//! What jobs and the whole state take.

use std::sync::Arc;

use crate::ids::{CertificateName, JobId, JobName, NodeId, TaskId};
use crate::job::record::Job;
use crate::job::{Group, Listener, Spec};
use crate::limits::{JOB_NAME_CHARS_MAX, JOB_NOTE_BYTES_MAX};
use crate::member;
use crate::memory::{Weigh, all_inside, of_entry, of_faults, of_list, of_map, of_set, of_shared, of_text};
use crate::ray::Ray;
use crate::state::State;

all_inside!(JobId);

/// How a table tells what it takes: from its count, or from all of its elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Count,
    Elements,
}

impl State {
    /// Bytes of memory that the state takes, roughly: every table with all that is in it. O(1).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let counted =
            self.jobs.bytes().saturating_add(self.sessions.bytes()).saturating_add(self.events.weight());
        counted.saturating_add(self.bytes_around())
    }

    /// The same of one job; `None` if it is not there.
    #[must_use]
    pub fn bytes_of(&self, job: JobId) -> Option<u64> {
        self.jobs.get(job).map(Job::outside)
    }

    /// The jobs that take most, the largest first.
    #[must_use]
    pub fn largest_jobs(&self, most: usize) -> Vec<(JobName, u64)> {
        let mut jobs: Vec<_> = self.jobs.iter().map(|job| (job.name.clone(), job.outside())).collect();
        jobs.sort_by(|(_, one), (_, other)| other.cmp(one));
        jobs.truncate(most);
        jobs
    }

    /// [`Self::bytes`] from every single element, as it would be counted after a snapshot was read: for tests. It looks at
    /// all of the state.
    #[must_use]
    pub fn recounted_bytes(&self) -> u64 {
        let entry = of_entry::<JobId, Arc<Job>>() + of_shared::<Job>();
        let jobs = self.jobs.iter().map(|job| entry.saturating_add(job.sum(By::Elements)));
        let others = self.sessions.recounted().saturating_add(self.events.recounted());
        jobs.fold(others.saturating_add(self.bytes_around()), u64::saturating_add)
    }

    /// What there are as many of as there are jobs and nodes, at most, and tokens.
    fn bytes_around(&self) -> u64 {
        of_map::<NodeId, member::Addresses>(self.members.len())
            .saturating_add(of_set::<NodeId>(self.drained.len()))
            .saturating_add(self.tokens.bytes())
            .saturating_add(of_map::<NodeId, CertificateName>(self.names.len()))
            .saturating_add((self.names.len() * JOB_NAME_CHARS_MAX) as u64)
            .saturating_add(of_map::<JobId, String>(self.notes.len()))
            .saturating_add((self.notes.len() * JOB_NOTE_BYTES_MAX) as u64)
    }
}

impl Weigh for Job {
    fn outside(&self) -> u64 {
        self.sum(By::Count)
    }
}

impl Job {
    fn sum(&self, by: By) -> u64 {
        let choose = |count: u64, recounted: &dyn Fn() -> u64| match by {
            By::Count => count,
            By::Elements => recounted(),
        };
        let latched = self.polls.latched.as_ref().map_or(0, |latched| of_faults(latched.fault.as_ref()));
        let parts = [
            choose(self.spec_bytes, &|| spec_bytes(&self.spec)),
            choose(self.tasks.bytes(), &|| self.tasks.recounted()),
            choose(self.alive.bytes(), &|| self.alive.recounted()),
            choose(self.barriers.bytes(), &|| self.barriers.recounted()),
            choose(self.increments.bytes(), &|| self.increments.recounted()),
            self.failed_barriers.bytes(),
            self.store.held(),
            latched,
            of_set::<TaskId>(self.polls.pushed.len()),
            self.runtime.as_ref().map_or(0, |runtime| choose(runtime.bytes(), &|| runtime.recounted())),
            choose(self.domains.bytes(), &|| self.domains.recounted()),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// What a job's specification takes.
pub(crate) fn spec_bytes(spec: &Spec) -> u64 {
    let groups = spec.groups.iter().map(|group| of_text(group.name.len()));
    let listeners = spec.listeners.iter().map(|listener| of_text(listener.address.len()));
    let lists = of_list::<Group>(spec.groups.len()).saturating_add(of_list::<Listener>(spec.listeners.len()));
    groups.chain(listeners).fold(lists, u64::saturating_add)
}

impl Ray {
    pub(crate) fn bytes(&self) -> u64 {
        let tables = [
            self.stores.bytes(),
            self.workers.bytes(),
            self.operations.bytes(),
            self.objects.bytes(),
            self.functions.bytes(),
            self.exports.held(),
            self.sessions.held(),
            self.offers.bytes(),
            self.demands.held(),
            self.descriptions.bytes(),
        ];
        tables.into_iter().fold(self.around(), u64::saturating_add)
    }

    pub(crate) fn recounted(&self) -> u64 {
        let tables = [
            self.stores.recounted(),
            self.workers.recounted(),
            self.operations.recounted(),
            self.objects.recounted(),
            self.functions.recounted(),
            self.exports.recounted(),
            self.sessions.recounted(),
            self.offers.recounted(),
            self.demands.recounted(),
            self.descriptions.recounted(),
        ];
        tables.into_iter().fold(self.around(), u64::saturating_add)
    }
}
