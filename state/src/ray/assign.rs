//! Giving tasks to workers.

use crate::ids::TimeMs;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::command::{Assignment, Run};
use crate::ray::ids::{Attempt, ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::operation::{Entry, Stage};
use crate::ray::order::Order;

impl Act<'_> {
    /// Gives out what still can be given out; how many that were.
    pub(crate) fn assign_all(&mut self, planned: &[Assignment]) -> u64 {
        self.ray.wake_delayed(self.now);
        let mut taken = 0;
        for Assignment { operation, attempt, worker } in planned.iter().copied() {
            let next = self.ray.entry(operation).map(|entry| Attempt(entry.attempt.0 + 1));
            if next == Some(attempt) && self.assign_if_due(operation, worker) {
                taken += 1;
            }
        }
        taken
    }

    /// Gives a task to a worker, unless something changed since that was planned.
    pub(crate) fn assign_if_due(&mut self, operation: OperationId, worker: WorkerId) -> bool {
        let due = self.ray.can_assign(operation, worker);
        if due {
            self.assign(operation, worker);
        }
        due
    }

    fn assign(&mut self, operation: OperationId, worker: WorkerId) {
        self.ray.dequeue(operation);
        let store = self.ray.workers[&worker].store;
        let arguments: Vec<ObjectId> =
            self.ray.entry(operation).into_iter().flat_map(Entry::awaited).collect();
        for argument in arguments {
            self.bring(argument, store);
        }
        let mut entry = self.ray.entry_mut(operation);
        entry.attempt.0 += 1;
        let run = Run { operation, attempt: entry.attempt };
        let holds = std::mem::take(&mut entry.holds);
        drop(entry);
        let owner = self.ray.owner_of(worker, &self.ray.workers[&worker]);
        for object in holds {
            self.ray.own(owner, object);
        }
        let order = self.ray.outbox.push(Order::Execute { worker, run });
        self.ray.entry_mut(operation).stage = Stage::Running { worker, order };
        self.ray.note_worker(operation, worker);
        self.ray.index.running += 1;
        self.ray.worker_mut(worker).running.push(run);
        self.ray.follow_idle(worker);
    }
}

impl Ray {
    fn can_assign(&self, operation: OperationId, worker: WorkerId) -> bool {
        let Some(waiting) = self.index.queue.waiting.get(&operation) else { return false };
        waiting.is_ready()
            && self.is_free(worker)
            && self.functions.get(waiting.slot).is_some_and(|function| function.workers.contains(&worker))
            && self.has_needed(operation, worker)
            && self.workers.get(&worker).is_some_and(|worker| self.is_clear(operation, worker.store))
    }

    /// Whether no order to free an earlier result of a task is under way to a store. It would free what the next
    /// attempt writes there.
    pub(crate) fn is_clear(&self, operation: OperationId, store: StoreId) -> bool {
        let again = self.entry(operation).filter(|entry| entry.attempt.0 > 0);
        let mut results = again.into_iter().flat_map(|entry| entry.results.iter());
        !results.any(|result| self.outbox.is_freeing(store, *result))
    }

    /// Puts a worker into the list of idle ones, at its end, or takes it out, the last one in its place: so the list
    /// has the order that it would have upstream.
    pub(crate) fn follow_idle(&mut self, id: WorkerId) {
        let free = self.is_free(id);
        let place = self.idle.iter().position(|idle| *idle == id);
        match place {
            None if free => self.idle.push_back(id),
            Some(place) if !free => {
                let last = self.idle.pop_back().expect("it has a place in the list");
                if place < self.idle.len() {
                    self.idle.set(place, last);
                }
            }
            Some(_) | None => {}
        }
    }

    /// Whether tasks may be planned for a worker.
    pub(crate) fn trusted(&self, worker: WorkerId, now: TimeMs) -> bool {
        let until = self.workers.get(&worker).and_then(|worker| worker.suspect_until);
        until.is_none_or(|until| until <= now)
    }
}
