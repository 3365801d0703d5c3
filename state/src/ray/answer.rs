//! What a scheduler answers.

use serde::{Deserialize, Serialize};

use crate::ray::ids::{ObjectId, StoreId, WorkerId};
use crate::ray::refusal::Refusal;

/// The answer to a [`super::Request`] or a [`super::Decision`] that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// Done; there is nothing to tell.
    Done,
    Store(StoreId),
    Worker {
        worker: WorkerId,
        store: StoreId,
        /// Where a worker is to listen; a driver is told one too.
        address: String,
        store_address: String,
    },
    /// The task is in the queue; these are its results.
    Submitted {
        results: Vec<ObjectId>,
    },
    Object {
        object: ObjectId,
        /// An earlier attempt of the same put has written it, and it is still there.
        present: bool,
    },
    /// Whether there was nothing to do, so that the workers were ended.
    Killed(bool),
    /// How many assignments took effect.
    Assigned {
        taken: u64,
    },
    Batch(#[serde(deserialize_with = "crate::nesting::deserialize")] Vec<Result<Answer, Refusal>>),
    /// The answer of an earlier attempt of the same request.
    Replayed(#[serde(deserialize_with = "crate::nesting::deserialize")] Box<Answer>),
    /// The task has ended, or its worker is told to end it. From level 10 on.
    Cancelled {
        /// It had ended before, and stays as it is.
        over: bool,
    },
}
