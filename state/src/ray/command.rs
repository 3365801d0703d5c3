//! What changes a scheduler.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::ids::{DurationMs, Sequence, Term, TimeMs};
use crate::ray::describe::Description;
use crate::ray::ids::{
    Attempt, ClientSession, FunctionName, ObjectId, OperationId, OrderId, StoreId, WorkerId,
};
use crate::ray::resources::{Needs, Offers};

/// A command to a job's scheduler.
#[allow(
    clippy::large_enum_variant,
    reason = "requests are nearly all commands, and a box more is what they would cost"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// What a client asks.
    Ask { scope: Scope, origin: Origin, request: Request },
    /// What the leader found out, decided or did.
    Lead { scope: Scope, decision: Decision },
}

/// Whom a request comes from, as far as the client says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Makes the request exactly-once.
    pub stamp: Option<Stamp>,
    /// The process whose references are charged. Counts only if it registered as [`Registration::attributed`]:
    /// all references of others are nobody's, and are never reclaimed.
    pub process: Option<WorkerId>,
}

/// A request's place in its client's session. The first one (sequence 1) opens the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub session: ClientSession,
    pub sequence: Sequence,
    /// The client has the answers of all sequence numbers below this one.
    pub acknowledged_below: Sequence,
}

/// Which attempt of which task a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    pub operation: OperationId,
    pub attempt: Attempt,
}

/// A call of a running task that makes objects: the same call of a later attempt gets the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCall {
    /// Which of the tasks that the worker was given it is; without that, the first of them.
    pub run: Option<Run>,
    /// Its place among the calls of that task, from 0.
    pub place: u32,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Answers [`super::Answer::Store`].
    RegisterStore {
        address: String,
    },
    /// Answers [`super::Answer::Worker`], or the refusal `NoStore`, which is not remembered.
    RegisterWorker(Registration),
    RegisterFunction {
        worker: WorkerId,
        name: FunctionName,
        results: u64,
    },
    /// Answers [`super::Answer::Submitted`], or the refusal `FunctionUnknown`, which is not remembered.
    Submit {
        worker: WorkerId,
        task: Task,
        options: TaskOptions,
        child: Option<TaskCall>,
        /// The idle worker that the task would be given to now ([`super::Ray::hint`]). Counts if it still could be,
        /// and nothing else waits.
        hint: Option<WorkerId>,
    },
    /// Answers [`super::Answer::Object`].
    Put {
        worker: WorkerId,
        child: Option<TaskCall>,
        /// The caller has a reference from the beginning.
        hold: bool,
    },
    /// The object is to come to the worker's store.
    Get {
        worker: WorkerId,
        object: ObjectId,
    },
    Alias {
        alias: ObjectId,
        target: ObjectId,
        run: Option<Run>,
    },
    /// A store has the whole object.
    Ready {
        object: ObjectId,
        store: StoreId,
        run: Option<Run>,
    },
    /// A store could not fetch an object that it was told to fetch. Without effect if it is not to have it any more.
    FetchFailed {
        object: ObjectId,
        store: StoreId,
        why: FetchFailure,
    },
    /// Adds a reference for each occurrence.
    AddReferences {
        objects: Vec<ObjectId>,
    },
    /// Takes a reference for each occurrence; all of them or none.
    DropReferences {
        objects: Vec<ObjectId>,
    },
    /// The objects whose ids are inside an object. Once for each object.
    Contain {
        object: ObjectId,
        contained: Vec<ObjectId>,
    },
    /// The worker can be given a task.
    Idle {
        worker: WorkerId,
        previous: Option<Previous>,
        run: Option<Run>,
    },
    /// The worker does not begin these tasks, which it was given: it waits within another one.
    GiveBack {
        worker: WorkerId,
        runs: Vec<Run>,
    },
    /// Ends all workers, if there is nothing to do. Answers [`super::Answer::Killed`].
    KillWorkers,
    /// The serialised function, opaque.
    ExportFunction {
        body: Bytes,
    },
    /// The serialised reusable variable with its name inside, opaque; `name` is what later ones replace: the front end
    /// tells languages apart in it.
    ExportVariable {
        name: FunctionName,
        body: Bytes,
    },
    /// In their order; each takes effect or is refused by itself. None of them is a batch. Answers
    /// [`super::Answer::Batch`].
    Batch(#[serde(deserialize_with = "crate::nesting::deserialize")] Vec<Request>),
    /// The process ends: a driver's references are given up, a worker or a store is as if it had died.
    Leave {
        peer: Peer,
    },
    /// [`Request::Submit`] of a task that needs something, or has a priority. From level 10 on.
    SubmitWith {
        worker: WorkerId,
        task: Task,
        options: TaskOptions,
        child: Option<TaskCall>,
        /// As in [`Request::Submit`].
        hint: Option<WorkerId>,
        needs: Needs,
    },
    /// [`Request::RegisterWorker`] of one that says what it has. From level 10 on.
    RegisterWorkerWith {
        registration: Registration,
        offers: Offers,
    },
    /// The task that makes the object is not to run any more. Answers [`super::Answer::Cancelled`]. From level 10 on.
    Cancel {
        worker: WorkerId,
        object: ObjectId,
        /// How long a worker that runs it has to end it.
        grace_ms: DurationMs,
    },
    /// What an object is, by the run that makes it, or by the process that put it. From level 10 on.
    Describe {
        object: ObjectId,
        run: Option<Run>,
        description: Description,
    },
}

/// Why a store could not fetch an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchFailure {
    /// No source gave all of it for too long, or there was no room for it.
    Unfinished,
    /// The store at this address, which it was to be fetched from, has none that can be used.
    Absent { source: String },
    /// It cannot come there: it is larger than the store, or for minutes no source of it could be reached or there was no
    /// room for it. The store has told those who wait for it.
    Told,
}

/// A worker or a driver that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The host that the process runs on, as an IP address.
    pub host: String,
    /// The store to use; empty: the one of the host with the fewest workers.
    pub store: String,
    pub role: Role,
    /// It names itself in its calls and its references are its own.
    pub attributed: bool,
    /// It sends heartbeats, and asks with the attempt that it means.
    pub extended: bool,
    /// How many tasks it may be given at a time, at most; it runs them in order. At least 1.
    pub slots: u32,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    Worker,
    /// Submits tasks and executes none.
    Driver,
}

/// A task as its client wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    pub name: FunctionName,
    pub arguments: Vec<Argument>,
    /// What the request had for ids of results: refused unless empty.
    pub results_given: u64,
}

/// An argument of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Argument {
    /// The task waits for the object.
    Object(ObjectId),
    /// A value, opaque, and the ids that occur in it, once per occurrence. The task does not wait for those.
    Value { bytes: Bytes, nested: Vec<ObjectId> },
}

/// How a task is to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskOptions {
    /// Attempts after the first; `None`: without limit.
    pub max_retries: Option<u32>,
    /// Exceptions of the function are tried again too.
    pub retry_exceptions: bool,
}

impl Default for TaskOptions {
    /// Like later Ray: three retries, none of them for exceptions.
    fn default() -> Self {
        Self { max_retries: Some(3), retry_exceptions: false }
    }
}

/// How a worker's task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    pub succeeded: bool,
    /// Any bytes, for people.
    pub error: Bytes,
}

/// A process that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Peer {
    Worker(WorkerId),
    Store(StoreId),
}

/// What the leader found out, decided or did. Checked again when it is applied: what does not hold any more has
/// no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Gives tasks to workers. Answers [`super::Answer::Assigned`].
    Assign(Vec<Assignment>),
    /// The orders were carried out, or need not be any more.
    Done { orders: Vec<OrderId> },
    /// A task could not be handed to its worker, which never said that it has it.
    Undelivered { runs: Vec<Run> },
    /// The peer was silent for longer than it may be.
    Expire { peers: Vec<Peer> },
    /// What a store says it holds, of the objects that are ready there, in ascending order. `asked_ms` is the log's
    /// time before the store was asked: what became ready since is left alone.
    Reconcile { store: StoreId, holds: Vec<ObjectId>, asked_ms: TimeMs },
    /// A store did not take the order to fetch an object.
    DeliveryFailed { store: StoreId, object: ObjectId },
    /// Closes sessions that were last used before this time of the log.
    ExpireSessions { before_ms: TimeMs },
    /// A new leader watches; peers get the time that they have after an election.
    Rearm { term: Term },
    /// How tasks are chosen from now on.
    SetAlgorithm(Algorithm),
    /// Tasks of workers of 2016 that live: all their results came to be, and nobody heard of their ends for so long
    /// that the reports must have been lost.
    Unreported { runs: Vec<Run> },
    /// Runs that were cancelled and of which nobody has heard since, for longer than their workers had for it: those
    /// workers are given up. From level 10 on.
    Overdue { runs: Vec<Run> },
}

/// How a task is chosen for an idle worker. Upstream's command line had the same two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// The one that the fewest of whose arguments must be fetched; of equal ones the earliest.
    #[default]
    LocalityAware,
    /// The earliest.
    Naive,
}

/// A task for a worker, as the leader planned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Assignment {
    pub operation: OperationId,
    /// The attempt that this begins.
    pub attempt: Attempt,
    pub worker: WorkerId,
}

impl Command {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Ask { scope, .. } | Self::Lead { scope, .. } => *scope,
        }
    }
}
