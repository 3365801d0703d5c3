//! Tasks: registration, incarnations, heartbeat verdicts, errors and their propagation.

pub(crate) mod alive;
mod apply;
mod devices;
pub(crate) mod ended;
mod error;
mod heartbeat;
pub(crate) mod interval;
pub(crate) mod leave;
pub(crate) mod lives;
pub(crate) mod origin;
mod poll;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod register;
pub(crate) mod returned;
mod standing;
pub(crate) mod table;
mod watch;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{DurationMs, Incarnation, JobId, TaskId, TaskVersion};
use crate::job;

pub use ended::{End, How, TAIL_BYTES_MAX, TAILS_KEPT};
pub use interval::{FIRST_HEARTBEAT_MS, HEARTBEAT_INTERVAL_MS_MAX};
pub use origin::{ORIGIN_CLIENT_BYTES_MAX, ORIGIN_HOST_BYTES_MAX, ORIGIN_WORD_BYTES_MAX, Origin};
pub use process::HOST_BYTES_MAX;
pub use standing::Standing;

/// What changes tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Waits for the register barrier: [`crate::Ticket::Register`]; or `Answer::Registered` at once.
    /// `recoverable` is the per-task wish of old dialect-T clients.
    Register { scope: Scope, task: TaskId, incarnation: Incarnation, recoverable: bool, protocol: Protocol },
    /// Waits for the shutdown barrier: [`crate::Ticket::Shutdown`]; or `Answer::Done` at once. A retry
    /// of a task that has left is done.
    Shutdown { scope: Scope, task: TaskId },
    /// Leaves at once, without a barrier.
    Reset { scope: Scope, task: TaskId },
    /// The task says that it is broken.
    ReportError { scope: Scope, task: TaskId, code: i32, message: String },
    /// Asks for errors: [`crate::Ticket::Poll`], or a fault at once. Never `Answer::Done`: a client
    /// that polls and is told OK ends its process. `wish`: whether this one is to be held, if not as
    /// the job has it: a connection that lasts may hold it, one that is about to end may not. A task
    /// whose poll was released is told of errors by its heartbeats.
    Poll { scope: Scope, task: TaskId, wish: Option<job::Poll> },
    /// Asks which tasks of a set are connected. Answers [`crate::Ticket::Alive`] always, even when the
    /// outcome is there at once: it is as long as the set, and replies are remembered.
    Alive { scope: Scope, task: TaskId, tasks: Vec<TaskId> },
    /// Hands in a task's devices and waits for all (dialect T). Answers [`crate::Ticket::Devices`],
    /// even when the outcome is there at once, for the same reason.
    ExchangeDevices { scope: Scope, task: TaskId, devices: Vec<Bytes> },
    /// Proposed by the leader's timers. Apply re-checks: only tasks that are connected with that
    /// incarnation fail.
    Expire { job: JobId, silent: Vec<(TaskId, Incarnation)> },
    /// Says that these tasks were told of the job's error at their own addresses.
    Pushed { job: JobId, tasks: Vec<TaskId> },
    /// Proposed when a heartbeat of another life arrives: see [`Beat::Propose`].
    RefuseBeat { scope: Scope, task: TaskId, incarnation: Incarnation },
    /// Says at which interval this life of the task sends heartbeats; nothing happens if it is over. Needs feature
    /// level 6.
    NoteInterval { scope: Scope, task: TaskId, incarnation: Incarnation, interval_ms: DurationMs },
    /// Says on which host this life of the task runs; nothing happens if another one is connected. Needs feature level 8.
    NoteHost { scope: Scope, task: TaskId, incarnation: Incarnation, host: String },
    /// Says that the process that was this life of the task is no more; nothing happens if another one is connected. Needs
    /// feature level 8.
    End { scope: Scope, task: TaskId, incarnation: Incarnation },
    /// The same, with how it ended, as whoever started the process saw it: the others are told so. A life that waits for the
    /// register barrier leaves it. Needs feature level 11.
    Ended { scope: Scope, task: TaskId, incarnation: Incarnation, end: End },
    /// [`Self::Register`] with where it comes from, for people. Needs feature level 11.
    RegisterFrom {
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
        recoverable: bool,
        protocol: Protocol,
        origin: Box<Origin>,
    },
    /// [`Self::NoteHost`] with what else is known of the process by whoever started it. Needs feature level 11.
    NoteOrigin { scope: Scope, task: TaskId, incarnation: Incarnation, origin: Box<Origin> },
}

impl Command {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Register { scope, .. }
            | Self::Shutdown { scope, .. }
            | Self::Reset { scope, .. }
            | Self::ReportError { scope, .. }
            | Self::Poll { scope, .. }
            | Self::Alive { scope, .. }
            | Self::ExchangeDevices { scope, .. }
            | Self::RefuseBeat { scope, .. }
            | Self::NoteInterval { scope, .. }
            | Self::NoteHost { scope, .. }
            | Self::End { scope, .. }
            | Self::Ended { scope, .. }
            | Self::RegisterFrom { scope, .. }
            | Self::NoteOrigin { scope, .. } => *scope,
            Self::Expire { job, .. } | Self::Pushed { job, .. } => Scope { job: *job, service: None },
        }
    }
}

impl Command {
    /// The task of which it speaks, as its sender or as whoever started it; `None`: it is a leader's.
    pub(crate) fn speaker(&self) -> Option<TaskId> {
        match self {
            Self::Register { task, .. }
            | Self::Shutdown { task, .. }
            | Self::Reset { task, .. }
            | Self::ReportError { task, .. }
            | Self::Poll { task, .. }
            | Self::Alive { task, .. }
            | Self::ExchangeDevices { task, .. }
            | Self::RefuseBeat { task, .. }
            | Self::NoteInterval { task, .. }
            | Self::NoteHost { task, .. }
            | Self::End { task, .. }
            | Self::Ended { task, .. }
            | Self::RegisterFrom { task, .. }
            | Self::NoteOrigin { task, .. } => Some(*task),
            Self::Expire { .. } | Self::Pushed { .. } => None,
        }
    }
}

/// What the tasks of a job speak. All of one job are expected to speak the same: their messages mean
/// nearly the same, but not the values that they exchange by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// `xla.coordination.CoordinationService`.
    Xla,
    /// `tensorflow.CoordinationService`.
    TensorFlow,
    /// `xla.DistributedRuntimeService`.
    Runtime,
}

/// A task's state. The wire numbers it; the front ends know how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    Disconnected,
    Connected,
    Error,
}

/// What the state says to a heartbeat. Heartbeats stay out of the log; only this verdict is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beat {
    /// Alive: record the time and answer `Answer::Registered` with the service incarnation.
    Recorded(crate::ids::ServiceIncarnation),
    /// Answer as above, but do not record (a stale life of a recoverable task, or a grace period).
    Tolerated(crate::ids::ServiceIncarnation),
    /// Refused; nothing changes.
    Refused(Fault),
    /// The beat changes the state: submit this command and give its reply.
    Propose(Command),
}

/// How long a task may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// As the job's creator decided.
    pub own_ms: DurationMs,
    /// As it really is: longer if the task's program was told to send heartbeats more rarely.
    pub tolerated_ms: DurationMs,
    /// How rarely it sends them is not known yet: so long it may take to the first one.
    pub first_ms: Option<DurationMs>,
}

impl Silence {
    /// How long it may be silent from now on.
    #[must_use]
    pub fn limit_ms(self) -> DurationMs {
        self.first_ms.unwrap_or(self.tolerated_ms)
    }
}

/// What whoever started the process of a task has said of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Process<'a> {
    /// Where it runs; empty: nobody has said it.
    pub host: &'a str,
    /// It is no more.
    pub ended: bool,
}

/// An error that a connected task is still to be told of at its own address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    pub job: JobId,
    pub listener: job::Listener,
    pub error: Fault,
}

/// Every task of a job, in order of task id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Report {
    pub version: TaskVersion,
    pub tasks: Vec<Info>,
}

/// One task as a watch shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Info {
    pub task: TaskId,
    pub phase: Phase,
    pub incarnation: Incarnation,
    pub error: Option<Fault>,
}
