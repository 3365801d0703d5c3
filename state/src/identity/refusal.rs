//! Why whoever proposed a command may not have its effect.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::{NodeId, TaskId};

/// A refusal, as [`crate::Fault::NotAuthorised`]. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// No certificate says what the command says of its caller.
    Malformed,
    /// It is about a job that is not the caller's.
    OtherJob,
    /// It speaks of a task, and the caller proved to be another one.
    OtherTask { task: TaskId },
    /// It speaks of a life of a task that somebody else has registered, or the caller is no task.
    OtherProcess { task: TaskId },
    /// It speaks of a node that is not the caller.
    OtherNode { node: NodeId },
    /// Only nodes propose it, by themselves.
    NodesOnly,
    /// Only who has proved to be an operator does it.
    OperatorsOnly,
}

impl Refusal {
    /// In plain words: see [`Fault::text`].
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Malformed => "the caller's identity is none that a certificate has".to_owned(),
            Self::OtherJob => "the call is about a job that is not the caller's".to_owned(),
            Self::OtherTask { task } => {
                format!("the call speaks of task {task}, and the caller proved to be another one")
            }
            Self::OtherProcess { task } => {
                format!(
                    "task {task} was registered by somebody else, and only that one or its agent speaks for it"
                )
            }
            Self::OtherNode { node } => {
                format!("the call speaks of node {node}, and the caller is another one")
            }
            Self::NodesOnly => "only nodes do that, by themselves".to_owned(),
            Self::OperatorsOnly => {
                "only who has proved to be an operator does that, by a node that enforces".to_owned()
            }
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::NotAuthorised(refusal)
    }
}
