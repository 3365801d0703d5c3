//! Reads. Whether what they show is fresh is the caller's business.

use std::ops::Bound;

use crate::command::{Command, Scope, Stamp};
use crate::fault::Fault;
use crate::ids::{DurationMs, Incarnation, JobId, JobName, JobSlot, Key, NodeId, TaskId, TimeMs};
use crate::kv::store;
use crate::limits::{ANSWER_BYTES_MAX, within};
use crate::state::{Entry, State};
use crate::task::process::Known;
use crate::task::{Phase, Silence};
use crate::{job, kv, member, ray, task};

impl State {
    /// The latest leader stamp seen.
    #[must_use]
    pub fn now_ms(&self) -> TimeMs {
        self.now_ms
    }

    /// Whether the command of that stamp was executed, and its reply is remembered.
    #[must_use]
    pub fn remembers(&self, stamp: Stamp) -> bool {
        self.sessions.remembers(stamp)
    }

    /// Whether apply answers that stamp without executing its command: with a reply that it remembers, or because the reply
    /// was forgotten or the session is gone.
    #[must_use]
    pub fn is_settled(&self, stamp: Stamp) -> bool {
        self.sessions.is_settled(stamp)
    }

    /// What to say to a heartbeat that arrives at `now_ms` (the leader's clock).
    #[must_use]
    pub fn heartbeat(
        &self,
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
        now_ms: TimeMs,
    ) -> task::Beat {
        match self.jobs.scoped(scope) {
            Ok(job) => job.beat(scope, task, incarnation, now_ms),
            Err(fault) => task::Beat::Refused(fault),
        }
    }

    /// How long a task may be silent in this life. `told` is the interval that its heartbeat tells just now.
    #[must_use]
    pub fn silence(
        &self,
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        told: Option<DurationMs>,
    ) -> Option<Silence> {
        self.jobs.get(job).map(|job| job.silence(task, incarnation, told))
    }

    /// The command that notes the interval at which a task sends heartbeats, if that is to be noted. `told` is what its
    /// heartbeat tells just now.
    #[must_use]
    pub fn interval_to_note(
        &self,
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
        told: Option<DurationMs>,
    ) -> Option<task::Command> {
        let command = self.jobs.scoped(scope).ok()?.interval_to_note(scope, task, incarnation, told)?;
        self.too_early(&Command::Task(command.clone())).is_none().then_some(command)
    }

    /// What was said of the process that is this life of a task, if anything was.
    #[must_use]
    pub fn process(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Option<task::Process<'_>> {
        self.jobs.get(job)?.domains.processes.of(task, incarnation).map(Known::shown)
    }

    /// Where the process that is this life of a task comes from, if anything was said of it.
    #[must_use]
    pub fn origin(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Option<&task::Origin> {
        self.jobs.get(job)?.domains.origins.of(task, incarnation).map(|origin| &**origin)
    }

    /// The host of the process that is this life of a task: as whoever started it said, or else as its registration did; empty
    /// if nobody has.
    #[must_use]
    pub fn host(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> &str {
        let said = self.process(job, task, incarnation).map(|process| process.host);
        let said = said.filter(|host| !host.is_empty());
        said.or_else(|| Some(self.origin(job, task, incarnation)?.host.as_str())).unwrap_or_default()
    }

    /// How the process that was this life of a task ended, if whoever started it has said so.
    #[must_use]
    pub fn end_of(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Option<&task::End> {
        self.jobs.get(job)?.domains.ends.of(task, incarnation)
    }

    /// Where a task stands, in words for people; `None` if there is no such job.
    #[must_use]
    pub fn standing(&self, job: JobId, task: TaskId) -> Option<task::Standing> {
        self.jobs.get(job).map(|job| job.standing(task))
    }

    /// The heartbeat timeout of a job.
    #[must_use]
    pub fn heartbeat_timeout(&self, job: JobId) -> Option<DurationMs> {
        self.jobs.get(job).map(|job| job.spec.heartbeat_timeout_ms)
    }

    /// A key's value now; [`Fault::KeyMissing`] if there is none. The key in the answer is normalised.
    ///
    /// # Errors
    /// The scope's faults, or that the key does not exist.
    pub fn get(&self, scope: Scope, asked: &str) -> Result<Entry, Fault> {
        let job = self.jobs.scoped(scope)?;
        let key = kv::normalize(asked);
        match job.store.get(&key) {
            Some(found) => Ok(entry((&key, found))),
            None => Err(Fault::KeyMissing { asked: asked.to_owned() }),
        }
    }

    /// Every key under `normalized(asked) + "/"`, in byte order; upstream's directory listing.
    ///
    /// # Errors
    /// The scope's faults, or that they are more bytes than one answer holds.
    pub fn directory(&self, scope: Scope, asked: &str) -> Result<Vec<Entry>, Fault> {
        let job = self.jobs.scoped(scope)?;
        let under = kv::normalize(asked);
        let bytes = job.store.under(&under).map(|(key, found)| key.as_str().len() + found.value.len());
        within("bytes of all keys under one directory", bytes.sum::<usize>() as u64, ANSWER_BYTES_MAX)?;
        Ok(job.store.under(&under).map(entry).collect())
    }

    /// How many keys a job has, and of how many tasks it is: what a look at all of them costs. O(1).
    #[must_use]
    pub fn sizes(&self, job: JobId) -> (u64, u64) {
        self.jobs.get(job).map_or((0, 0), |job| (job.store.keys(), u64::from(job.spec.tasks)))
    }

    /// At most `limit` keys whose text begins with `prefix`, after `after`, in byte order.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn list(
        &self,
        scope: Scope,
        prefix: &str,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Entry>, Fault> {
        let job = self.jobs.scoped(scope)?;
        let from = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let matching = job.store.range(from).take_while(|(key, _)| key.as_str().starts_with(prefix));
        Ok(matching.take(limit).map(entry).collect())
    }

    /// The states of the given tasks, or of all if the list is empty.
    ///
    /// # Errors
    /// The scope's faults, or an unknown task.
    pub fn tasks(&self, scope: Scope, tasks: &[TaskId]) -> Result<task::Report, Fault> {
        self.jobs.scoped(scope)?.report(tasks)
    }

    /// The job of that name.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<JobId> {
        self.jobs.named(name)
    }

    /// The name of a job.
    #[must_use]
    pub fn job_name(&self, job: JobId) -> Option<&JobName> {
        self.jobs.get(job).map(|job| &job.name)
    }

    /// A job as listings show it.
    #[must_use]
    pub fn job(&self, job: JobId) -> Option<job::Summary> {
        self.jobs.get(job).map(job::record::Job::summary)
    }

    /// The scheduler of a job, if it has one.
    #[must_use]
    pub fn ray(&self, job: JobId) -> Option<&ray::Ray> {
        self.jobs.get(job)?.domains.ray.as_deref()
    }

    /// The jobs that have a scheduler, by id.
    #[must_use]
    pub fn ray_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|job| job.domains.ray.is_some()).map(|job| job.id).collect()
    }

    /// Whether nobody has done anything here yet: there is neither a session nor a job, as in a cluster that has just been
    /// formed. O(1).
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.sessions.len() == 0 && self.jobs.iter().next().is_none()
    }

    /// How many sessions are open. O(1).
    #[must_use]
    pub fn sessions_open(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// Every job, by id.
    #[must_use]
    pub fn jobs(&self) -> Vec<job::Summary> {
        self.jobs.iter().map(job::record::Job::summary).collect()
    }

    /// Which job listens in which slot.
    #[must_use]
    pub fn job_slots(&self) -> Vec<(JobSlot, JobId, JobName)> {
        let named = |(slot, id)| Some((slot, id, self.jobs.get(id)?.name.clone()));
        self.jobs.slots().filter_map(named).collect()
    }

    /// Where the nodes listen.
    #[must_use]
    pub fn members(&self) -> Vec<(NodeId, member::Addresses)> {
        self.members.iter().map(|(node, addresses)| (*node, addresses.clone())).collect()
    }

    /// Every connected task and how long it may be silent: what a new leader must watch.
    #[must_use]
    pub fn connected_tasks(&self) -> Vec<(JobId, TaskId, Incarnation, Silence)> {
        let mut connected = Vec::new();
        for job in self.jobs.iter() {
            let tasks = job.tasks.records().filter(|(_, task)| task.phase() == Phase::Connected);
            connected.extend(
                tasks.map(|(id, task)| {
                    (job.id, *id, task.incarnation, job.silence(*id, task.incarnation, None))
                }),
            );
        }
        connected
    }

    /// The connected tasks that are still to be told of their jobs' errors at their own addresses.
    #[must_use]
    pub fn untold(&self) -> Vec<task::Untold> {
        self.jobs.iter().flat_map(job::record::Job::untold).collect()
    }

    /// What a job's creator decided.
    #[must_use]
    pub fn job_spec(&self, job: JobId) -> Option<&job::Spec> {
        self.jobs.get(job).map(|job| &job.spec)
    }
}

fn entry((key, entry): (&Key, &store::Entry)) -> Entry {
    Entry { key: key.clone(), value: entry.value.clone(), version: entry.version, modified: entry.modified }
}
