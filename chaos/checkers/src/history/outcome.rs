//! What a client learnt of its call.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Element, Fence, Generation, GraphSeen, Incarnation, LogIndex, NodeId, Rank, TaskId, TensorSeen, Value,
    Version,
};

/// How a call ended, as the client saw it.
///
/// Only these three: trouble of the harness itself is none of them and voids the whole run
/// ([`super::Recorder::void`]), because what it hides could be a violation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The cluster answered. A refusal that tells something of the state is an answer too:
    /// [`Reply::Refused`].
    Ok(Reply),
    /// The call surely had no effect and never will, and tells nothing of the state; with the reason. In
    /// doubt use [`Outcome::Unknown`].
    Fail(String),
    /// The call may have taken effect, may take effect at any later time, or never; with the reason.
    /// Everything that was sent and not answered.
    Unknown(String),
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Acknowledged.
    Done,
    /// A write, acknowledged; version and log index if the protocol tells them.
    Written { version: Option<Version>, index: Option<LogIndex> },
    /// What a register holds; `None`: it does not exist.
    Value(Option<Found>),
    /// What a list holds, oldest first.
    Elements(Vec<Element>),
    /// What a counter holds; after an increment: right after it.
    Count(i64),
    /// A lock as it stands; `None`: nobody has ever held it.
    Lock(Option<LockSeen>),
    /// What a lock protects; `None`: nothing was written yet.
    Guarded(Option<Guarded>),
    /// The barrier let the task pass.
    Passed,
    /// This instance of the barrier failed, for everybody who waited.
    BarrierFailed { reason: String, missing: Option<Missing> },
    /// The task called again at this barrier, and this older call ended for that reason alone.
    Superseded,
    /// An instance of a barrier at which somebody waits; `None`: none is open.
    BarrierSeen(Option<BarrierSeen>),
    /// How the tasks of a job stand.
    Tasks(Vec<TaskSeen>),
    /// The digest of one node's state at an index.
    Digest { node: NodeId, applied_index: LogIndex, digest: u64 },
    /// Why a task made nothing.
    NotMade { reason: NotMade, text: String },
    /// What a scheduler has left.
    Scheduler(SchedulerSeen),
    /// The rank of a node of MindSpore.
    Rank(Rank),
    /// How a graph of Mars is.
    Graph(GraphSeen),
    /// How a mutable tensor is.
    Tensor(TensorSeen),
    /// The domain said no.
    Refused(Refusal),
}

/// Why a scheduled task made nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotMade {
    /// Its function failed, or that of a task whose result it needed.
    Failed,
    /// The scheduler gave it up, and says why.
    Lost,
}

/// A scheduler when nothing is to be done any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SchedulerSeen {
    /// Objects that something refers to.
    pub objects: u64,
    /// Tasks that wait or run.
    pub open: u64,
    /// Tasks of those it remembers that were begun more than once.
    pub again: u64,
}

/// What a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Found {
    pub value: Value,
    /// If the protocol tells it.
    pub version: Option<Version>,
    /// The log index of the write that is seen, if the protocol tells it.
    pub index: Option<LogIndex>,
}

/// A lock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LockSeen {
    /// The token of the holder, or of the last one.
    pub fence: Fence,
    pub held: bool,
}

/// What a lock protects, and under which token it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guarded {
    pub fence: Fence,
    pub value: Value,
}

/// Who did not come to a barrier.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Missing {
    /// Of how many members the answer says that they did not come.
    pub count: u32,
    /// Those whom it names, possibly fewer.
    pub named: Vec<TaskId>,
}

/// An open instance of a barrier.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BarrierSeen {
    pub generation: Generation,
    /// Who has come, all of them or the first few.
    pub arrived: Vec<TaskId>,
    /// Who has not, all of them or the first few.
    pub missing: Vec<TaskId>,
}

/// What is told of one task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskSeen {
    pub task: TaskId,
    /// In the files of histories by the name that it has had from the beginning.
    #[serde(rename = "standing")]
    pub state: CoordinatedTaskState,
    /// The life that the answer is about, if it tells.
    pub incarnation: Option<Incarnation>,
}

/// What the cluster makes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoordinatedTaskState {
    /// It takes part.
    Connected,
    /// It never came, or left in order.
    Disconnected,
    /// It was declared dead because nothing was heard of it.
    Dead,
    /// It is in error for any other reason.
    Error,
}

/// Refusals that tell something of the state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The register exists.
    Exists,
    /// The register has another version: this one, if the protocol tells it; 0: it does not exist.
    VersionMismatch { current: Option<Version> },
    /// The task has another life now.
    Fenced,
    /// The task was declared dead because nothing was heard of it.
    Dead,
    /// It is not there.
    Missing,
    /// It is in a state in which that cannot be done.
    Busy,
    /// The epoch is another one, or is sealed.
    Stale,
}

impl Outcome {
    /// `ok`, `fail` or `unknown`, as reports count it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::Fail(_) => "fail",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The answer, if there was one.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Self::Ok(reply) => Some(reply),
            Self::Fail(_) | Self::Unknown(_) => None,
        }
    }

    /// Whether the cluster did what was asked, as far as this call alone can tell.
    #[must_use]
    pub fn acknowledged(&self) -> bool {
        self.reply().is_some_and(|reply| !matches!(reply, Reply::Refused(_)))
    }

    /// Whether the call may have taken effect.
    #[must_use]
    pub fn may_have_effect(&self) -> bool {
        match self {
            Self::Ok(reply) => !matches!(reply, Reply::Refused(_)),
            Self::Unknown(_) => true,
            Self::Fail(_) => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok(reply) => write!(f, "{reply}"),
            Self::Fail(reason) => write!(f, "failed without effect ({reason})"),
            Self::Unknown(reason) => write!(f, "outcome unknown ({reason})"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Written { version: Some(version), .. } => write!(f, "written as version {version}"),
            Self::Written { version: None, .. } => f.write_str("written"),
            Self::Value(None) => f.write_str("nothing there"),
            Self::Value(Some(Found { value, version: Some(version), .. })) => {
                write!(f, "value {value}, version {version}")
            }
            Self::Value(Some(Found { value, .. })) => write!(f, "value {value}"),
            Self::Elements(elements) => write!(f, "{} elements", elements.len()),
            Self::Count(count) => write!(f, "{count}"),
            Self::Lock(None) => f.write_str("never held"),
            Self::Lock(Some(LockSeen { fence, held: true })) => write!(f, "held with token {fence}"),
            Self::Lock(Some(LockSeen { fence, held: false })) => write!(f, "free after token {fence}"),
            Self::Guarded(None) => f.write_str("nothing there"),
            Self::Guarded(Some(Guarded { fence, value })) => {
                write!(f, "value {value} of the holder with token {fence}")
            }
            Self::Passed => f.write_str("passed"),
            Self::BarrierFailed { reason, missing: None } => write!(f, "barrier failed ({reason})"),
            Self::BarrierFailed { reason, missing: Some(missing) } => {
                write!(f, "barrier failed ({reason}; {} missing, among them ", missing.count)?;
                tasks(f, &missing.named)?;
                f.write_str(")")
            }
            Self::Superseded => f.write_str("superseded by a later call of the same task"),
            Self::BarrierSeen(None) => f.write_str("nobody waits"),
            Self::BarrierSeen(Some(seen)) => {
                write!(f, "#{} is open; arrived: ", seen.generation)?;
                tasks(f, &seen.arrived)
            }
            Self::Tasks(tasks) => write!(f, "{} tasks", tasks.len()),
            Self::Digest { node, applied_index, digest } => {
                write!(f, "node {node} at index {applied_index}: {digest:016x}")
            }
            Self::NotMade { reason: NotMade::Failed, text } => write!(f, "its function failed ({text})"),
            Self::NotMade { reason: NotMade::Lost, text } => write!(f, "given up ({text})"),
            Self::Scheduler(SchedulerSeen { objects, open, again }) => {
                write!(f, "{objects} objects, {open} tasks open, {again} begun again")
            }
            Self::Rank(rank) => write!(f, "rank {rank}"),
            Self::Graph(seen) => write!(f, "{seen}"),
            Self::Tensor(seen) => write!(f, "{seen}"),
            Self::Refused(Refusal::Exists) => f.write_str("refused: it exists"),
            Self::Refused(Refusal::VersionMismatch { current: Some(current) }) => {
                write!(f, "refused: it has version {current}")
            }
            Self::Refused(Refusal::VersionMismatch { current: None }) => {
                f.write_str("refused: it has another version")
            }
            Self::Refused(Refusal::Fenced) => f.write_str("refused: the task has another life"),
            Self::Refused(Refusal::Dead) => f.write_str("refused: the task was declared dead"),
            Self::Refused(Refusal::Missing) => f.write_str("refused: it is not there"),
            Self::Refused(Refusal::Busy) => f.write_str("refused: not in its present state"),
            Self::Refused(Refusal::Stale) => f.write_str("refused: the epoch is another one, or is sealed"),
        }
    }
}

fn tasks(f: &mut fmt::Formatter<'_>, tasks: &[TaskId]) -> fmt::Result {
    for (place, task) in tasks.iter().enumerate() {
        write!(f, "{}{task}", if place == 0 { "" } else { ", " })?;
    }
    Ok(())
}
