//! What happens to a scheduler that people want to know.

use bytes::Bytes;

use crate::ray::ids::FunctionName;

/// What a command has brought about: see [`crate::events`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Incident {
    /// A worker ended, or was given up.
    WorkerLost { worker: String, why: String },
    /// A task failed, and will not be tried again.
    TaskFailed { function: FunctionName, error: Bytes },
    /// A task runs again, as its results were lost.
    Rebuilt { function: FunctionName },
}
