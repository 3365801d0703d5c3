//! Why there is no variable.

use crate::error::CallError;
use crate::value::ValueError;

/// Why a task cannot use a reusable variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReusableError {
    #[error("this worker has no reusable variable `{name}`; next: declare it with `Worker::reusable`")]
    Undeclared { name: String },
    #[error("reusable variable `{name}` was declared as {declared} and is used as {asked}")]
    OtherType { name: String, declared: &'static str, asked: &'static str },
    #[error("reusable variable `{name}` is in use by this task already")]
    InUse { name: String },
    #[error("reusable variable `{name}` could not be made: {why}")]
    NotMade { name: String, why: String },
}

/// Why a value was not exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(transparent)]
    Call(#[from] CallError),
}
