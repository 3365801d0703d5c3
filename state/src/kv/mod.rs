//! The key-value store of a job. Keys belong to the job, not to the task that wrote them.

mod apply;
pub(crate) mod increments;
mod normalize;
pub(crate) mod store;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::ids::{Incarnation, TaskId};

pub use normalize::normalize;

/// What changes keys. Keys arrive as the caller wrote them and are normalised here.
///
/// A write answers [`crate::Answer::Value`] with the key's new version. Its value is empty (the
/// caller has it, and replies are remembered) except for an increment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A retry that finds the value it wants to write was executed before.
    Insert { scope: Scope, key: String, value: Bytes, overwrite: bool },
    /// Writes only if the key's version is `expected` (0: only if it does not exist).
    CompareAndSet { scope: Scope, key: String, value: Bytes, expected: u64 },
    /// Adds to a decimal number of 64 bits; an absent key counts as 0. Answers the sum. A retry of the
    /// caller's last increment is answered with that one's sum.
    Increment {
        scope: Scope,
        key: String,
        by: i64,
        /// The life of the task that calls, where the protocol tells it.
        caller: Option<Incarnation>,
    },
    /// The key and everything under `key/`. Answers [`crate::Answer::Deleted`].
    Delete { scope: Scope, key: String },
    /// An insert that overwrites nothing, by this life of a task. One that came back into a recoverable job is answered as if
    /// it had written what stands there already byte for byte, as its earlier life did; everybody else is refused.
    InsertAs { scope: Scope, key: String, value: Bytes, task: TaskId, incarnation: Incarnation },
}

impl Command {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Insert { scope, .. }
            | Self::InsertAs { scope, .. }
            | Self::CompareAndSet { scope, .. }
            | Self::Increment { scope, .. }
            | Self::Delete { scope, .. } => *scope,
        }
    }

    /// The same by nobody in particular.
    pub(crate) fn without_life(self) -> Self {
        match self {
            Self::InsertAs { scope, key, value, task: _, incarnation: _ } => {
                Self::Insert { scope, key, value, overwrite: false }
            }
            command => command,
        }
    }
}
