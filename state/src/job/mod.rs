//! Jobs: namespaces with their own tasks, keys, barriers, errors and service incarnation.

pub(crate) mod domains;
mod notes;
pub(crate) mod record;
pub(crate) mod spec;
pub(crate) mod table;
pub(crate) mod turn;

use serde::{Deserialize, Serialize};

use crate::ids::{DurationMs, JobId, JobName, JobSlot, ServiceIncarnation, TaskId};
use crate::task;

/// The job that callers without a job of their own belong to. It has no slot: it is reached at the
/// nodes' client ports.
pub const DEFAULT_JOB: &str = "default";

/// What changes jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Answers [`crate::Answer::Job`], or [`crate::Fault::JobExists`].
    Create {
        /// Checked by apply: see [`JobName`].
        name: String,
        spec: Spec,
        /// Random bits from the proposer: the state machine has no randomness.
        service: ServiceIncarnation,
    },
    /// Removes the job and everything in it; its waiting calls end with a fault.
    Delete { name: String },
    /// Writes a note about the job, for people; an empty one takes it away. Needs feature level 2.
    Note { name: String, note: String },
}

/// Tasks of one job that share a name of their own, as TensorFlow's `worker` and `chief`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    pub name: String,
    /// How many; within the group they are numbered from 0.
    pub tasks: u32,
}

/// Where a task listens for errors that are told by calling it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Listener {
    pub task: TaskId,
    /// `HOST:PORT`.
    pub address: String,
}

/// What a job's creator decides; it never crosses the coordination protocols.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spec {
    /// How many tasks; their ids are `0..tasks`.
    pub tasks: u32,
    pub heartbeat_timeout_ms: DurationMs,
    /// How long the shutdown barrier waits. Zero: every task leaves alone.
    pub shutdown_timeout_ms: DurationMs,
    /// How long the register barrier waits.
    pub register_timeout_ms: DurationMs,
    /// Tasks may restart, and their errors are not told to others.
    pub recoverable: bool,
    /// Whether tasks wait for each other at shutdown.
    pub shutdown_barrier: bool,
    pub poll: Poll,
    /// A task that was lost may come back as another life.
    pub reconnect: bool,
    /// The groups, in the order in which their tasks are numbered; empty: one group that answers to any
    /// name.
    pub groups: Vec<Group>,
    /// The tasks that are told of errors by a call to their own address, by task id.
    pub listeners: Vec<Listener>,
}

/// How a job tells its tasks of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Poll {
    /// As upstream: `PollForError` is held until there is an error.
    Hold,
    /// `PollForError` is answered at once, and errors come with the next heartbeat: no call is held
    /// on a connection that may break.
    Release,
}

impl Spec {
    /// A job of `tasks` tasks with jaxlib's defaults: heartbeat 100 s, shutdown 300 s, register 1 h.
    #[must_use]
    pub fn of_tasks(tasks: u32) -> Self {
        Self {
            tasks,
            heartbeat_timeout_ms: DurationMs(100_000),
            shutdown_timeout_ms: DurationMs(300_000),
            register_timeout_ms: DurationMs(3_600_000),
            recoverable: false,
            shutdown_barrier: true,
            poll: Poll::Release,
            reconnect: false,
            groups: Vec::new(),
            listeners: Vec::new(),
        }
    }
}

/// A job as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Summary {
    pub id: JobId,
    pub name: JobName,
    pub slot: Option<JobSlot>,
    pub service: ServiceIncarnation,
    pub spec: Spec,
    /// What its tasks have spoken so far; more than one is a mixture that was not meant.
    pub protocols: Vec<task::Protocol>,
    pub tasks_connected: u32,
    pub tasks_in_error: u32,
    pub keys: u64,
    pub key_bytes: u64,
    pub barriers_open: u32,
}
