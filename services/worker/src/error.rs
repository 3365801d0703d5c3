//! What can go wrong, by who can act.

use std::sync::Arc;

use tonic::Code;

use crate::value::ValueError;

/// The process must register again: it was given up, or could not reach the cluster for as long as it tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}; next: begin anew, and look at `tripod status` if that fails")]
pub struct Lost {
    pub(crate) why: Arc<str>,
}

/// A call that the scheduler did not carry out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("{text}")]
    Refused { code: Code, text: String, reason: String },
    #[error("the scheduler answered another call than this one")]
    Unexpected,
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    /// The task that was to make it failed.
    #[error("{0}")]
    Failed(Box<TaskError>),
    /// The value is of another type, or of a kind that only Python reads.
    #[error("object {object}: {why}")]
    Value { object: u64, why: ValueError },
    /// The store of this machine does not give it.
    #[error("object {object}: the object store of this machine answered {code:?}: {text}")]
    Store { object: u64, code: Code, text: String },
    #[error("object {object} did not come within {waited_ms} ms; next: `tripod ray tasks`")]
    TimedOut { object: u64, waited_ms: u64 },
    #[error(transparent)]
    Call(#[from] CallError),
}

/// How a task failed, as its results tell it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{function}: {text}")]
pub struct TaskError {
    /// `EXCEPTION`, or the reason for which the scheduler gave up (`RETRIES_EXHAUSTED`, ...).
    pub reason: String,
    pub function: String,
    /// For people: the panic or exception, and where it came from.
    pub text: String,
    /// How earlier attempts ended.
    pub history: Vec<String>,
}

impl TaskError {
    /// Whether the function itself failed, and not what it was to be made from, or by.
    #[must_use]
    pub fn is_exception(&self) -> bool {
        self.reason == crate::failed::EXCEPTION
    }
}
