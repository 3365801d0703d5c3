//! The state of one scheduler.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};

use crate::ids::{Term, TimeMs};
use crate::memory::Weighed;
use crate::ray::answer::Answer;
use crate::ray::cancel::Cancelling;
use crate::ray::command::Algorithm;
use crate::ray::describe::Description;
use crate::ray::export::Exports;
use crate::ray::function::Functions;
use crate::ray::graph_task::Outcome;
use crate::ray::ids::{ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::incident::Incident;
use crate::ray::index::Index;
use crate::ray::object::Object;
use crate::ray::operation::Operation;
use crate::ray::order::Order;
use crate::ray::outbox::Outbox;
use crate::ray::peers::{Store, Worker};
use crate::ray::report::FailedTask;
use crate::ray::resources::{Demands, OffersByWorker};
use crate::ray::session::Sessions;
use crate::ray::view::Reason;

/// A job's scheduler. Cloning is O(1).
///
/// Every reference has one owner, and an object's count is the sum over all owners. Ids are given out in ascending
/// order: an id below the next one that is not among the objects is deallocated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ray {
    pub(crate) next: Next,
    pub(crate) algorithm: Algorithm,
    /// When the last leader began to watch.
    pub(crate) armed: Option<(Term, TimeMs)>,
    pub(crate) stores: Weighed<StoreId, Arc<Store>>,
    pub(crate) workers: Weighed<WorkerId, Arc<Worker>>,
    /// In the order in which the planner goes through them.
    pub(crate) idle: Vector<WorkerId>,
    /// How many tasks workers may have that have more than their slots, since those wait for other tasks.
    pub(crate) beside: OrdMap<WorkerId, u32>,
    /// What living workers have that said so.
    pub(crate) offers: OffersByWorker,
    /// What tasks need that said so.
    pub(crate) demands: Demands,
    /// Tasks that run and are not to run any more.
    pub(crate) cancelling: OrdMap<OperationId, Cancelling>,
    /// What objects are of which that was said.
    pub(crate) descriptions: Weighed<ObjectId, Description>,
    /// Tasks of graphs that have not ended, with the worker that had the last attempt.
    pub(crate) watched: OrdMap<OperationId, Option<WorkerId>>,
    /// Of those, the ones that this command has ended. Empty between two commands.
    pub(crate) ended: Vec<(OperationId, Outcome)>,
    /// What this command has brought about that people want to know. Empty between two commands.
    pub(crate) incidents: Vec<Incident>,
    pub(crate) functions: Functions,
    pub(crate) exports: Exports,
    pub(crate) operations: Weighed<OperationId, Arc<Operation>>,
    pub(crate) objects: Weighed<ObjectId, Arc<Object>>,
    /// What attributed processes own.
    pub(crate) references: OrdMap<(WorkerId, ObjectId), u64>,
    /// What ids meant that were deallocated, of the newest ones.
    pub(crate) gone: OrdMap<ObjectId, ObjectId>,
    /// Canonical object, store, alias: what a store is to be told when it has the object.
    pub(crate) notices: OrdSet<(ObjectId, StoreId, ObjectId)>,
    /// Stores to which an object was on its way when its last copy was lost.
    pub(crate) wanted: OrdSet<(ObjectId, StoreId)>,
    pub(crate) outbox: Outbox,
    pub(crate) sessions: Sessions,
    /// The newest failed tasks, in the order of the reports.
    pub(crate) failed: Vector<Arc<FailedTask>>,
    /// What those take, roughly. Derived.
    pub(crate) failed_bytes: u64,
    /// How many tasks failed.
    pub(crate) failures: u64,
    pub(crate) succeeded: u64,
    pub(crate) index: Index,
}

/// The next id of each kind that is counted here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Next {
    pub(crate) object: ObjectId,
    pub(crate) operation: OperationId,
    pub(crate) worker: WorkerId,
    pub(crate) store: StoreId,
}

/// What is derived does not count, nor does it count that there is nothing of what came with a later level: so a state
/// has the digest that it has for a program of a level at which there is none.
impl Hash for Ray {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { next, algorithm, armed, stores, workers, idle, functions, exports, .. } = self;
        (next, algorithm, armed, stores, workers, idle, functions, exports).hash(hasher);
        let Self { operations, objects, references, gone, notices, wanted, outbox, .. } = self;
        (operations, objects, references, gone, notices, wanted, outbox).hash(hasher);
        let Self { sessions, failed, failures, succeeded, .. } = self;
        (sessions, failed, failures, succeeded).hash(hasher);
        if !self.beside.is_empty() {
            self.beside.hash(hasher);
        }
        if self.is_of_level_10() {
            let Self { offers, demands, cancelling, descriptions, watched, .. } = self;
            (offers, demands, cancelling, descriptions, watched).hash(hasher);
        }
    }
}

impl Ray {
    /// Whether something is kept beside what earlier levels know.
    fn is_of_level_10(&self) -> bool {
        !self.offers.is_empty()
            || self.demands.len() > 0
            || !self.cancelling.is_empty()
            || !self.descriptions.is_empty()
            || !self.watched.is_empty()
    }

    /// Whether builds that know no level above 9 could not read it. It looks at everything.
    pub(crate) fn needs_level_10(&self) -> bool {
        let cancelled = |reason: Reason| reason == Reason::Cancelled;
        self.is_of_level_10()
            || self.outbox.iter().any(|(_, order)| matches!(order, Order::Cancel { .. }))
            || self
                .objects
                .values()
                .any(|object| object.failure.as_ref().is_some_and(|failure| cancelled(failure.reason)))
            || self.sessions.remember_any(|answer| matches!(answer, Answer::Cancelled { .. }))
    }
}
