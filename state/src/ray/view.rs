//! What a scheduler shows: to the leader's planner and messenger, and to clients.

use bytes::Bytes;

use crate::ids::TimeMs;
use crate::ray::command::{Argument, Role, Run};
use crate::ray::ids::{FunctionName, ObjectId, OperationId, StoreId, WorkerId};

/// A worker or driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    pub role: Role,
    pub address: String,
    pub store: StoreId,
    pub attributed: bool,
    pub extended: bool,
    pub life: WorkerLife,
    /// What it was given, in the order in which it runs them.
    pub running: Vec<Run>,
}

/// Whether a worker lives, and works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerLife {
    /// It has not asked for a task yet.
    Registered,
    Idle,
    Busy,
    /// Why it is dead.
    Dead(String),
}

/// An object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub id: StoreId,
    pub address: String,
    pub alive: bool,
    /// Objects that it holds.
    pub objects: u64,
    /// Objects on their way to it.
    pub in_transit: u64,
}

/// What a worker needs to execute a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub name: FunctionName,
    pub arguments: Vec<Argument>,
    pub results: Vec<ObjectId>,
    /// One for each result: whether it must be stored.
    pub store_output: Vec<bool>,
}

/// Something that is sent to every worker before its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Export {
    Function(Bytes),
    Variable(Bytes),
}

/// One operation of the computation graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub id: OperationId,
    pub creator: Creator,
    pub kind: Kind,
}

/// Which task made an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Creator {
    /// A driver, outside of any task.
    Root,
    /// A worker that has no task.
    Nobody,
    Task(OperationId),
}

/// What an operation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Task {
        name: FunctionName,
        arguments: Vec<Argument>,
        results: Vec<ObjectId>,
    },
    Put(ObjectId),
    Get(ObjectId),
    /// It is not remembered any more.
    Forgotten,
}

/// The whole scheduler, as `SchedulerInfo` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// Queued tasks, in the order of the queue.
    pub queue: Vec<OperationId>,
    /// Idle workers, in the order in which the planner goes through them.
    pub idle: Vec<WorkerId>,
    pub functions: Vec<(FunctionName, u64, Vec<WorkerId>)>,
    /// The first object that the next two lists show.
    pub base_object: u64,
    /// What each object means; `None`: not known yet.
    pub targets: Vec<Option<ObjectId>>,
    /// `None`: deallocated.
    pub counts: Vec<Option<u64>>,
    pub base_operation: u64,
    pub graph: Vec<Operation>,
}

/// A task that runs or failed, as `TaskInfo` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStatus {
    pub operation: OperationId,
    pub name: FunctionName,
    pub worker: String,
    pub error: Bytes,
}

/// All tasks that run or failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskInfo {
    /// In the order of the reports; the last 10,000.
    pub failed: Vec<TaskStatus>,
    /// By worker.
    pub running: Vec<TaskStatus>,
    pub succeeded: u64,
}

/// What became of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// Not made yet, or being made again.
    Pending,
    Ready,
    /// It will never be had; why.
    Failed(Failure),
    Deallocated,
}

/// Why an object cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    pub reason: Reason,
    /// The function that was to make it, if a task was.
    pub function: Option<FunctionName>,
    /// How the attempts ended, for people.
    pub history: Vec<String>,
}

/// Why an object cannot be had, in a word that is part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Reason {
    PutObject,
    RetriesExhausted,
    LineageEvicted,
    NoSuchFunction,
    DependencyFailed(ObjectId),
    ReconstructionDisabled,
    /// Somebody wanted its task to end. From level 10 on.
    Cancelled,
}

/// A task as listings show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTask {
    pub id: OperationId,
    pub name: FunctionName,
    pub state: TaskState,
    /// Attempts that a worker made or makes. What was given back without having begun is none.
    pub attempts: u32,
    pub worker: Option<WorkerId>,
    /// Of one that waits: what it needs that no worker has.
    pub error: Bytes,
    /// How those that ended without a result did.
    pub history: Vec<String>,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// For its arguments, or for the time before the next attempt.
    Waiting,
    Queued,
    Running,
    /// It was reported done, and its results are not there yet.
    Reported,
    Done,
    Failed,
    Cancelled,
}

/// Counts, for people and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub queued: u64,
    pub running: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub objects_live: u64,
    pub objects_pending: u64,
    pub objects_failed: u64,
    pub gets: u64,
    pub orders: u64,
    pub functions: u64,
    pub exports: u64,
    pub lineage_bytes: u64,
}

/// The sizes of a scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub workers: u64,
    pub stores: u64,
    pub queued: u64,
    pub running: u64,
    /// Since the job began.
    pub succeeded: u64,
    /// Since the job began.
    pub failed: u64,
    pub objects: u64,
    pub orders: u64,
}

/// A peer whose silence is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub peer: super::Peer,
    pub address: String,
    pub extended: bool,
    /// The log's time when it registered.
    pub since_ms: TimeMs,
}
