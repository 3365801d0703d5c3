//! The whole replicated state and the one door to change it.

use bytes::Bytes;

use crate::command::{Effect, Envelope, Reply, Scope};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::ids::{
    BarrierCounter, BarrierName, DurationMs, Incarnation, JobId, JobName, JobSlot, Key, NodeId, TaskId,
    TimeMs,
};
use crate::wait::Ticket;
use crate::{job, member, task};

/// What apply gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub reply: Reply,
    /// In the order in which they happened.
    pub effects: Vec<Effect>,
}

/// The replicated state. Cloning is O(1): the maps share structure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct State {}

/// An open barrier instance, for timers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenBarrier {
    pub job: JobId,
    pub barrier: BarrierName,
    pub counter: BarrierCounter,
    pub timeout: DurationMs,
}

/// One key of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    pub value: Bytes,
    pub version: u64,
    pub modified: crate::ids::LogIndex,
}

impl State {
    /// Applies one command. Total: never panics on input, never fails; a refusal is a reply.
    pub fn apply(&mut self, _context: &ApplyContext, _envelope: Envelope) -> Outcome {
        Outcome { reply: Err(Fault::JobUnknown { name: None }), effects: Vec::new() }
    }

    /// The outcome of a wait, or `None` while it must go on.
    #[must_use]
    pub fn resolve(&self, _ticket: &Ticket) -> Option<Reply> {
        None
    }

    /// A 64-bit hash of everything in the state. Equal states have equal digests on every replica.
    #[must_use]
    pub fn digest(&self) -> u64 {
        0
    }

    /// The latest leader stamp seen.
    #[must_use]
    pub fn now_ms(&self) -> TimeMs {
        TimeMs(0)
    }

    /// What to say to a heartbeat that arrives at `now_ms` (the leader's clock).
    #[must_use]
    pub fn heartbeat(&self, _scope: Scope, _task: TaskId, _incarnation: Incarnation, _now_ms: TimeMs) -> task::Beat {
        task::Beat::Refused(Fault::JobUnknown { name: None })
    }

    /// The heartbeat timeout of a job.
    #[must_use]
    pub fn heartbeat_timeout(&self, _job: JobId) -> Option<DurationMs> {
        None
    }

    /// A key's value now; [`Fault::KeyMissing`] if there is none. The key in the answer is normalised.
    ///
    /// # Errors
    /// The scope's faults, or that the key does not exist.
    pub fn get(&self, _scope: Scope, _asked: &str) -> Result<Entry, Fault> {
        Err(Fault::JobUnknown { name: None })
    }

    /// Every key under `normalized(asked) + "/"`, in byte order; upstream's directory listing.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn directory(&self, _scope: Scope, _asked: &str) -> Result<Vec<Entry>, Fault> {
        Err(Fault::JobUnknown { name: None })
    }

    /// At most `limit` keys whose text begins with `prefix`, after `after`, in byte order.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn list(&self, _scope: Scope, _prefix: &str, _after: Option<&Key>, _limit: usize) -> Result<Vec<Entry>, Fault> {
        Err(Fault::JobUnknown { name: None })
    }

    /// The states of the given tasks, or of all if the list is empty.
    ///
    /// # Errors
    /// The scope's faults, or an unknown task.
    pub fn tasks(&self, _scope: Scope, _tasks: &[TaskId]) -> Result<task::Report, Fault> {
        Err(Fault::JobUnknown { name: None })
    }

    /// The job of that name.
    #[must_use]
    pub fn job_named(&self, _name: &str) -> Option<JobId> {
        None
    }

    /// A job as listings show it.
    #[must_use]
    pub fn job(&self, _job: JobId) -> Option<job::Summary> {
        None
    }

    /// Every job, by id.
    #[must_use]
    pub fn jobs(&self) -> Vec<job::Summary> {
        Vec::new()
    }

    /// Which job listens in which slot.
    #[must_use]
    pub fn job_slots(&self) -> Vec<(JobSlot, JobId, JobName)> {
        Vec::new()
    }

    /// Where the nodes listen.
    #[must_use]
    pub fn members(&self) -> Vec<(NodeId, member::Addresses)> {
        Vec::new()
    }

    /// Every connected task and its job's heartbeat timeout: what a new leader must watch.
    #[must_use]
    pub fn connected_tasks(&self) -> Vec<(JobId, TaskId, Incarnation, DurationMs)> {
        Vec::new()
    }

    /// Every open barrier instance: what a new leader must time.
    #[must_use]
    pub fn open_barriers(&self) -> Vec<OpenBarrier> {
        Vec::new()
    }
}
