//! Why a scheduler refused.

use serde::{Deserialize, Serialize};

use crate::ray::ids::{FunctionName, ObjectId, OperationId, StoreId, WorkerId};

/// A refusal, as [`crate::Fault::Ray`]. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// No worker can execute the function (yet).
    FunctionUnknown {
        name: FunctionName,
    },
    WorkerUnknown {
        worker: WorkerId,
    },
    /// The worker or driver was given up, or ended: it must register again.
    WorkerExpired {
        worker: WorkerId,
    },
    StoreUnknown {
        store: StoreId,
    },
    /// The store was given up: it must register again.
    StoreExpired {
        store: StoreId,
    },
    /// There is no store at that address, or on that host.
    NoStore {
        host: String,
        address: String,
    },
    ObjectUnknown {
        object: ObjectId,
    },
    /// Nothing refers to the object any more.
    ObjectDeallocated {
        object: ObjectId,
    },
    /// An argument that does not exist.
    ArgumentUnknown {
        place: u64,
        object: ObjectId,
    },
    /// An argument to which nothing refers any more.
    ArgumentDeallocated {
        place: u64,
        object: ObjectId,
    },
    /// A field has a value that it must not have.
    Invalid {
        field: String,
        reason: String,
    },
    /// The process does not own the reference that it gives away or drops.
    NotOwned {
        process: WorkerId,
        object: ObjectId,
    },
    /// More references were dropped than there are.
    TooFewReferences {
        object: ObjectId,
        held: u64,
        dropped: u64,
    },
    AliasedAlready {
        alias: ObjectId,
        target: ObjectId,
    },
    AliasOfItself {
        alias: ObjectId,
    },
    AliasCycle {
        alias: ObjectId,
        target: ObjectId,
    },
    /// The object has a value of its own, so it cannot mean another.
    AliasOfValue {
        alias: ObjectId,
    },
    /// An id that means another object has no value of its own.
    ReadyAlias {
        object: ObjectId,
        target: ObjectId,
    },
    ContainedAlready {
        object: ObjectId,
    },
    /// A driver executes nothing.
    IsDriver {
        worker: WorkerId,
    },
    /// The report is about an attempt that is not the current one.
    OtherAttempt {
        operation: OperationId,
    },
    /// The session is unknown or was closed; nothing was executed.
    SessionExpired,
    /// The sequence number was used and its answer is not remembered any more; nothing was executed again.
    AnswerForgotten,
    /// The sequence number is too far ahead of the acknowledged ones.
    SessionWindow {
        limit: u64,
    },
    /// A bound would be exceeded.
    Full {
        what: String,
        limit: u64,
    },
}
