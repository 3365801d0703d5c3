//! Asking for objects. The caller then waits at its own store.

use std::sync::Arc;

use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::ids::{ObjectId, OperationId, WorkerId};
use crate::ray::limits::{GETS_MAX, ORDERS_MAX, at_most};
use crate::ray::operation::{Kind, Operation};
use crate::ray::refusal::Refusal;

impl Act<'_> {
    pub(crate) fn get(&mut self, worker: WorkerId, object: ObjectId) -> Result<Answer, Refusal> {
        let asks = self.ray.living(worker)?;
        let (store, creator) = (asks.store, self.ray.creator(asks, None)?);
        self.ray.living_store(store)?;
        self.ray.object(object)?;
        at_most("gets that wait", self.ray.index.getters.len() as u64 + 1, GETS_MAX)?;
        at_most("orders", self.ray.outbox.len() as u64 + 2, ORDERS_MAX)?;
        let waits = !self.ray.can_bring(object);
        let operation =
            self.ray.new_operation(Operation { creator, kind: Kind::Get { worker, object, waits } });
        if waits {
            self.ray.index.getters.insert((object, operation));
            self.ray.index.worker_gets.insert((worker, operation));
        } else {
            self.ray.show(operation);
            self.bring(object, store);
        }
        Ok(Answer::Done)
    }

    /// Brings ids to those who wait for them, in the order in which they asked.
    pub(crate) fn serve(&mut self, members: &[ObjectId]) {
        if self.ray.index.getters.is_empty()
            || !members.first().is_some_and(|first| self.ray.can_bring(*first))
        {
            return;
        }
        let mut due: Vec<(OperationId, ObjectId)> = Vec::new();
        for member in members {
            due.extend(self.ray.getters_of(*member).into_iter().map(|operation| (operation, *member)));
        }
        due.sort_unstable();
        for (operation, object) in due {
            let Kind::Get { worker, .. } = self.ray.operations[&operation].kind else { continue };
            let store = self.ray.workers.get(&worker).map(|worker| worker.store);
            self.ray.end_get(operation, worker, object);
            if let Some(store) = store {
                self.bring(object, store);
            }
        }
    }
}

impl Ray {
    pub(crate) fn new_operation(&mut self, operation: Operation) -> OperationId {
        let id = self.next.operation;
        self.next.operation.0 += 1;
        self.operations.insert(id, Arc::new(operation));
        id
    }

    pub(crate) fn getters_of(&self, object: ObjectId) -> Vec<OperationId> {
        let all = (object, OperationId(0))..=(object, OperationId(u64::MAX));
        self.index.getters.range(all).map(|(_, operation)| *operation).collect()
    }

    /// A get is over, served or not.
    pub(crate) fn end_get(&mut self, operation: OperationId, worker: WorkerId, object: ObjectId) {
        self.index.getters.remove(&(object, operation));
        self.index.worker_gets.remove(&(worker, operation));
        // That is no change in what it takes.
        if let Some((found, _)) = self.operations.slot(&operation)
            && let Kind::Get { waits, .. } = &mut Arc::make_mut(found).kind
        {
            *waits = false;
        }
        self.show(operation);
    }

    /// A process that ended waits for nothing.
    pub(crate) fn end_gets_of(&mut self, worker: WorkerId) {
        let all = (worker, OperationId(0))..=(worker, OperationId(u64::MAX));
        let gets: Vec<OperationId> =
            self.index.worker_gets.range(all).map(|(_, operation)| *operation).collect();
        for operation in gets {
            if let Kind::Get { object, .. } = self.operations[&operation].kind {
                self.end_get(operation, worker, object);
            }
        }
    }
}
