//! What clients do with graphs and mutable tensors of Mars, and how they find them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Cell, Content, Epoch, StreamId, Timestamp, Value};

/// What is done with a graph. Each graph has a name of its own, which is used for no other one after it was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphAct {
    /// Hands it over. `makes`: what comes of it; `None`: it fails, on purpose. `expires`: it is deleted by itself some time
    /// after its end. [`super::Reply::Graph`], or [`super::Refusal::Exists`] if one of that name has other bytes.
    Submit { content: Content, makes: Option<Value>, expires: bool },
    /// Asks how it is. [`super::Reply::Graph`] or [`super::Refusal::Missing`].
    Look,
    /// A stream tells how it is, which may be old. [`super::Reply::Graph`].
    Hear { stream: StreamId },
    /// Has it stopped, unless it has ended. As [`Self::Look`], with how it is then.
    Stop,
    /// Forgets it. [`super::Reply::Done`], [`super::Refusal::Missing`], or [`super::Refusal::Busy`] while it runs.
    Delete,
    /// Reads what it has made. [`super::Reply::Value`].
    Fetch,
}

/// How far a graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphState {
    Preparing,
    Unscheduled,
    Running,
    Cancelling,
    Succeeded,
    Failed,
    Cancelled,
}

/// How a graph was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GraphSeen {
    pub state: GraphState,
    /// In millionths, if it was told.
    pub progress_millionths: Option<u32>,
}

/// What is done with a mutable tensor. Each has a name of its own, as graphs have. What no client has written reads as
/// [`super::Reply::Value`] of nothing, and no two writes have the same value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorAct {
    /// Creates it. [`super::Reply::Tensor`].
    Create,
    /// Asks how it is. [`super::Reply::Tensor`] or [`super::Refusal::Missing`].
    Look,
    /// Writes one cell. [`super::Reply::Done`] or [`super::Refusal::Stale`].
    Write { cell: Cell, at: Timestamp, value: Value, epoch: Epoch },
    /// Reads one cell as of a time; `None`: whatever was written. [`super::Reply::Value`] or [`super::Refusal::Stale`].
    Read { cell: Cell, at: Option<Timestamp>, epoch: Epoch },
    /// Has it sealed as of a time. [`super::Reply::Done`] when it is; [`super::Refusal::Missing`], or
    /// [`super::Refusal::Busy`] if it was sealed as of another one.
    Seal { at: Option<Timestamp> },
    /// Reads one cell of what it was sealed as. [`super::Reply::Value`].
    ReadSealed { cell: Cell },
    /// Forgets it. [`super::Reply::Done`] or [`super::Refusal::Missing`].
    Delete,
}

/// How far a mutable tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorState {
    Open,
    Sealing,
    Sealed,
    /// Nobody has some of it any more.
    Lost,
}

/// How a mutable tensor was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorSeen {
    pub epoch: Epoch,
    pub state: TensorState,
    /// How many have each of its chunks, at least.
    pub copies: u32,
}

impl GraphState {
    /// Whether nothing happens any more.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Unscheduled => "unscheduled",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl GraphAct {
    /// As reports count it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "graph-submit",
            Self::Look => "graph-look",
            Self::Hear { .. } => "graph-hear",
            Self::Stop => "graph-stop",
            Self::Delete => "graph-delete",
            Self::Fetch => "graph-fetch",
        }
    }

    /// Whether it must be replicated before it is answered.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Submit { .. })
    }
}

impl TensorAct {
    /// As reports count it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Create => "tensor-create",
            Self::Look => "tensor-look",
            Self::Write { .. } => "tensor-write",
            Self::Read { .. } => "tensor-read",
            Self::Seal { .. } => "tensor-seal",
            Self::ReadSealed { .. } => "tensor-read-sealed",
            Self::Delete => "tensor-delete",
        }
    }

    /// Whether it must be durable before it is answered, and is made again and again in every run.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Create | Self::Write { .. })
    }
}

impl fmt::Display for GraphSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.state.word())?;
        self.progress_millionths.map_or(Ok(()), |progress| write!(f, ", {progress} millionths done"))
    }
}

impl fmt::Display for TensorSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            TensorState::Open => "open",
            TensorState::Sealing => "being sealed",
            TensorState::Sealed => "sealed",
            TensorState::Lost => "lost",
        };
        write!(f, "{state} in epoch {}, {} copies", self.epoch, self.copies)
    }
}

impl fmt::Display for GraphAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit { content, makes: Some(value), .. } => {
                write!(f, "submit content {content}, which makes {value}")
            }
            Self::Submit { content, makes: None, .. } => write!(f, "submit content {content}, which fails"),
            Self::Look => f.write_str("look"),
            Self::Hear { stream } => write!(f, "hear on stream {stream}"),
            Self::Stop => f.write_str("stop"),
            Self::Delete => f.write_str("delete"),
            Self::Fetch => f.write_str("fetch"),
        }
    }
}

impl fmt::Display for TensorAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("create"),
            Self::Look => f.write_str("look"),
            Self::Write { cell, at, value, epoch } => {
                write!(f, "write cell {cell} = {value} at {at} in epoch {epoch}")
            }
            Self::Read { cell, at: Some(at), epoch } => {
                write!(f, "read cell {cell} as of {at} in epoch {epoch}")
            }
            Self::Read { cell, at: None, epoch } => write!(f, "read cell {cell} in epoch {epoch}"),
            Self::Seal { at: Some(at) } => write!(f, "seal as of {at}"),
            Self::Seal { at: None } => f.write_str("seal"),
            Self::ReadSealed { cell } => write!(f, "read cell {cell} as it was sealed"),
            Self::Delete => f.write_str("delete"),
        }
    }
}
