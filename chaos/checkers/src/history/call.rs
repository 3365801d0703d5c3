//! What a client may ask of the cluster, as far as a checker cares.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Act, Barrier, ClusterNode, Element, Fence, Generation, GraphAct, GraphName, Incarnation, Job, Key,
    NodeId, Stamp, TaskId, TensorAct, TensorName, Value, Version, Work,
};

/// A call, whatever protocol carried it. The protocol's repetitions of one call are one call here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Reads a register, also by a call that waits until there is something to read.
    /// Answered by [`super::Reply::Value`].
    Read { key: Key },
    /// Writes a register whatever is there. [`super::Reply::Written`].
    Write { key: Key, value: Value },
    /// Writes a register that does not exist yet. [`super::Reply::Written`] or [`super::Refusal::Exists`].
    Insert { key: Key, value: Value },
    /// Writes a register that has this version; version 0 is that of a key which does not exist.
    /// [`super::Reply::Written`] or [`super::Refusal::VersionMismatch`].
    CompareAndSet { key: Key, expected: Version, value: Value },
    /// Removes a register. [`super::Reply::Done`]. The checkers know nothing of directories: a key that is
    /// deleted must not have keys below it.
    Delete { key: Key },

    /// Adds an element at the end of a list, by whatever means. [`super::Reply::Done`].
    Append { list: Key, element: Element },
    /// Reads a list, oldest element first. [`super::Reply::Elements`].
    ReadList { list: Key },

    /// Adds to a counter. [`super::Reply::Count`] with the new value if the protocol tells it, else
    /// [`super::Reply::Done`]. With a stamp the effect must happen once however often the call was sent, also
    /// if the repetitions are operations of their own.
    Increment { counter: Key, by: i64, stamp: Option<Stamp> },
    /// Reads a counter; one that nobody has touched is 0. [`super::Reply::Count`].
    ReadCounter { counter: Key },

    /// Takes a lock, with the fencing token that follows the one that was seen last. `steals`: from a holder
    /// that was silent for too long, and not because nobody held it. [`super::Reply::Done`]; whoever is not
    /// the first of several fails.
    Acquire { lock: Key, fence: Fence, steals: bool },
    /// Gives a lock back. [`super::Reply::Done`], or [`super::Refusal::VersionMismatch`] if it is somebody
    /// else's by now.
    Release { lock: Key, fence: Fence },
    /// Looks at a lock. [`super::Reply::Lock`].
    ReadLock { lock: Key },
    /// Writes what a lock protects, unless it has changed since the holder looked at it.
    /// [`super::Reply::Done`] or [`super::Refusal::VersionMismatch`]. The values under one token rise.
    WriteGuarded { register: Key, fence: Fence, value: Value },
    /// Reads what a lock protects. [`super::Reply::Guarded`].
    ReadGuarded { register: Key },

    /// Arrives at a barrier and waits. [`super::Reply::Passed`], [`super::Reply::BarrierFailed`] or
    /// [`super::Reply::Superseded`].
    Arrive {
        job: Job,
        barrier: Barrier,
        generation: Generation,
        task: TaskId,
        /// All who take part, this task included.
        members: Vec<TaskId>,
        timeout_ms: u64,
    },
    /// Looks at a barrier without arriving. [`super::Reply::BarrierSeen`].
    ReadBarrier { job: Job, barrier: Barrier },

    /// Begins a life of a task. [`super::Reply::Done`], or [`super::Refusal::Fenced`].
    Register { job: Job, task: TaskId, incarnation: Incarnation },
    /// Says that a task lives. [`super::Reply::Done`], [`super::Refusal::Fenced`] or
    /// [`super::Refusal::Dead`].
    Heartbeat { job: Job, task: TaskId, incarnation: Incarnation },
    /// Ends a life of a task in order. [`super::Reply::Done`].
    Leave { job: Job, task: TaskId, incarnation: Incarnation },
    /// Asks how the tasks of a job stand. [`super::Reply::Tasks`].
    ReadTasks { job: Job },

    /// Hands a task to a scheduler. `makes`: what its function makes; `None`: it fails, on purpose.
    /// [`super::Reply::Done`].
    Submit { work: Work, makes: Option<Value> },
    /// Reads what a task has made, once it has. [`super::Reply::Value`] or [`super::Reply::NotMade`].
    ReadResult { work: Work },
    /// Looks at a scheduler after everything was read and dropped. [`super::Reply::Scheduler`].
    ReadScheduler,

    /// What a node of MindSpore does or hears; how it is answered stands with each [`Act`].
    Node { node: ClusterNode, act: Act },

    /// What a client does with a graph of Mars; how it is answered stands with each [`GraphAct`].
    Graph { graph: GraphName, act: GraphAct },
    /// The same with a mutable tensor: [`TensorAct`].
    Tensor { tensor: TensorName, act: TensorAct },

    /// Asks one node for the digest of its state. [`super::Reply::Digest`].
    ReadDigest { node: NodeId },
}

impl Call {
    /// The kind of call, as reports count it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Insert { .. } => "insert",
            Self::CompareAndSet { .. } => "compare-and-set",
            Self::Delete { .. } => "delete",
            Self::Append { .. } => "append",
            Self::ReadList { .. } => "read-list",
            Self::Increment { .. } => "increment",
            Self::ReadCounter { .. } => "read-counter",
            Self::Acquire { .. } => "acquire",
            Self::Release { .. } => "release",
            Self::ReadLock { .. } => "read-lock",
            Self::WriteGuarded { .. } => "write-guarded",
            Self::ReadGuarded { .. } => "read-guarded",
            Self::Arrive { .. } => "arrive",
            Self::ReadBarrier { .. } => "read-barrier",
            Self::Register { .. } => "register",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Leave { .. } => "leave",
            Self::ReadTasks { .. } => "read-tasks",
            Self::Submit { .. } => "submit",
            Self::ReadResult { .. } => "read-result",
            Self::ReadScheduler => "read-scheduler",
            Self::Node { act, .. } => act.kind(),
            Self::Graph { act, .. } => act.kind(),
            Self::Tensor { act, .. } => act.kind(),
            Self::ReadDigest { .. } => "read-digest",
        }
    }

    /// Whether the call changes something that the cluster must replicate before it may say so. Heartbeats do
    /// not, and a barrier's answer depends on others.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Write { .. }
            | Self::Insert { .. }
            | Self::CompareAndSet { .. }
            | Self::Delete { .. }
            | Self::Append { .. }
            | Self::Increment { .. }
            | Self::Acquire { .. }
            | Self::Release { .. }
            | Self::WriteGuarded { .. }
            | Self::Submit { .. } => true,
            Self::Node { act, .. } => act.writes(),
            Self::Graph { act, .. } => act.writes(),
            Self::Tensor { act, .. } => act.writes(),
            Self::Read { .. }
            | Self::ReadList { .. }
            | Self::ReadCounter { .. }
            | Self::ReadLock { .. }
            | Self::ReadGuarded { .. }
            | Self::Arrive { .. }
            | Self::ReadBarrier { .. }
            | Self::Register { .. }
            | Self::Heartbeat { .. }
            | Self::Leave { .. }
            | Self::ReadTasks { .. }
            | Self::ReadResult { .. }
            | Self::ReadScheduler
            | Self::ReadDigest { .. } => false,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { key } => write!(f, "read {key}"),
            Self::Write { key, value } => write!(f, "write {key} = {value}"),
            Self::Insert { key, value } => write!(f, "insert {key} = {value}"),
            Self::CompareAndSet { key, expected, value } => {
                write!(f, "compare-and-set {key} = {value} at version {expected}")
            }
            Self::Delete { key } => write!(f, "delete {key}"),
            Self::Append { list, element } => write!(f, "append {element} to {list}"),
            Self::ReadList { list } => write!(f, "read list {list}"),
            Self::Increment { counter, by, stamp: None } => write!(f, "increment {counter} by {by}"),
            Self::Increment { counter, by, stamp: Some(stamp) } => {
                write!(f, "increment {counter} by {by} ({stamp})")
            }
            Self::ReadCounter { counter } => write!(f, "read counter {counter}"),
            Self::Acquire { lock, fence, steals: false } => write!(f, "take {lock} with token {fence}"),
            Self::Acquire { lock, fence, steals: true } => {
                write!(f, "take {lock} away from its holder, with token {fence}")
            }
            Self::Release { lock, fence } => write!(f, "release {lock}, token {fence}"),
            Self::ReadLock { lock } => write!(f, "look at lock {lock}"),
            Self::WriteGuarded { register, fence, value } => {
                write!(f, "write {register} = {value} with token {fence}")
            }
            Self::ReadGuarded { register } => write!(f, "read {register} with its token"),
            Self::Arrive { job, barrier, generation, task, .. } => {
                write!(f, "task {task} of {job} arrives at {barrier} #{generation}")
            }
            Self::ReadBarrier { job, barrier } => write!(f, "look at barrier {barrier} of {job}"),
            Self::Register { job, task, incarnation } => {
                write!(f, "register task {task} of {job}, life {incarnation}")
            }
            Self::Heartbeat { job, task, incarnation } => {
                write!(f, "heartbeat of task {task} of {job}, life {incarnation}")
            }
            Self::Leave { job, task, incarnation } => {
                write!(f, "task {task} of {job}, life {incarnation}, leaves")
            }
            Self::ReadTasks { job } => write!(f, "read the tasks of {job}"),
            Self::Submit { work, makes: Some(value) } => write!(f, "submit task {work}, which makes {value}"),
            Self::Submit { work, makes: None } => write!(f, "submit task {work}, which fails"),
            Self::ReadResult { work } => write!(f, "read the result of task {work}"),
            Self::ReadScheduler => f.write_str("look at the scheduler"),
            Self::Node { node, act } => write!(f, "{node} {act}"),
            Self::Graph { graph, act } => write!(f, "graph {graph}: {act}"),
            Self::Tensor { tensor, act } => write!(f, "tensor {tensor}: {act}"),
            Self::ReadDigest { node } => write!(f, "read the digest of node {node}"),
        }
    }
}
