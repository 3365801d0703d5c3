//! Workers, drivers and stores that end, or are given up.

use std::sync::Arc;

use crate::memory::Edit;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::{Peer, Role};
use crate::ray::ids::{ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::incident::Incident;
use crate::ray::limits::DEAD_KEPT;
use crate::ray::object::Target;
use crate::ray::operation::Stage;
use crate::ray::refusal::Refusal;
use crate::ray::view::Reason;

/// Why a worker ended that said that it would.
const LEFT: &str = "it left";

impl Act<'_> {
    pub(crate) fn leave(&mut self, peer: Peer) -> Result<Answer, Refusal> {
        match peer {
            Peer::Worker(worker) => {
                self.ray.living(worker)?;
                self.end_worker(worker, LEFT);
            }
            Peer::Store(store) => {
                self.ray.living_store(store)?;
                self.end_store(store, "it left");
            }
        }
        Ok(Answer::Done)
    }

    /// Gives silent peers up, those that still live; whether there were any.
    pub(crate) fn expire(&mut self, peers: &[Peer]) -> bool {
        let mut changed = false;
        for peer in peers {
            match *peer {
                Peer::Worker(worker) if self.ray.living(worker).is_ok() => {
                    self.end_worker(worker, "it was silent for too long");
                }
                Peer::Store(store) if self.ray.living_store(store).is_ok() => {
                    self.end_store(store, "it was silent for too long");
                }
                Peer::Worker(_) | Peer::Store(_) => continue,
            }
            changed = true;
        }
        changed
    }

    /// A worker's tasks are tried elsewhere, and take their references before its own go.
    pub(crate) fn end_worker(&mut self, id: WorkerId, why: &str) {
        let mut worker = self.ray.worker_mut(id);
        worker.death = Some(why.to_owned());
        worker.accepting = false;
        let (role, store, attributed) = (worker.role, worker.store, worker.attributed);
        let (address, running) = (worker.address(), worker.running.clone());
        drop(worker);
        self.ray.index.workers_alive -= 1;
        if role == Role::Worker {
            if why != LEFT {
                let (worker, why) = (address.clone(), why.to_owned());
                self.ray.incidents.push(Incident::WorkerLost { worker, why });
            }
            self.ray.index.locations.count(store, |tally| tally.workers -= 1);
        }
        self.ray.functions.leave(id);
        self.ray.beside.remove(&id);
        self.ray.offers.remove(&id);
        self.ray.outbox.forget(Peer::Worker(id));
        self.ray.end_gets_of(id);
        self.ray.follow_idle(id);
        for run in running {
            self.ray.stop_running(id, run);
            if self.ray.is_cancelling(run.operation) {
                self.fail_task(run.operation, Reason::Cancelled);
            } else {
                self.retry(run.operation, &format!("worker {id} at {address} died: {why}"));
            }
        }
        self.give_up_puts(id);
        if attributed {
            self.reclaim(id);
        }
        if role == Role::Driver {
            self.cancel_unwanted(id);
        }
        self.ray.index.dead_workers.insert(id);
        while self.ray.index.dead_workers.len() > DEAD_KEPT {
            let oldest = self.ray.index.dead_workers.remove_min();
            oldest.and_then(|oldest| self.ray.workers.remove(&oldest));
        }
    }

    /// A store's objects and deliveries vanish, and its workers end with it: they have no other way to objects.
    /// Drivers go on: what they refer to may be needed, and only they know.
    pub(crate) fn end_store(&mut self, id: StoreId, why: &str) {
        let (store, total) = self.ray.stores.slot(&id).expect("it was found alive");
        let mut store = Edit::new(Arc::make_mut(store), total);
        store.death = Some(why.to_owned());
        drop(store);
        self.ray.outbox.forget(Peer::Store(id));
        self.ray.forget_store_notices(id);
        let held = self.ray.index.locations.held_by(id);
        for object in &held {
            self.ray.displace(*object, id);
        }
        for object in self.ray.index.locations.arriving_at(id) {
            if self.end_delivery(object, id) {
                self.drop_one(object);
            }
        }
        for (object, to) in self.ray.index.locations.leaving_from(id) {
            self.fetch_elsewhere(object, to, Some(id));
        }
        for object in held {
            if self.ray.is_lost(object) {
                self.lose(object);
            }
        }
        for operation in self.ray.reported_at(id) {
            let results = self.ray.entry(operation).map(|entry| entry.results.clone()).unwrap_or_default();
            self.lost.extend(results.into_iter().filter(|result| self.ray.is_awaited(*result)));
        }
        let attached = self.ray.workers.iter().filter(|(_, worker)| worker.is_alive() && worker.store == id);
        let attached: Vec<(WorkerId, Role)> = attached.map(|(id, worker)| (*id, worker.role)).collect();
        for (process, role) in attached {
            match role {
                Role::Worker => self.end_worker(process, "its store ended"),
                Role::Driver => self.give_up_puts(process),
            }
        }
        self.ray.index.dead_stores.insert(id);
        while self.ray.index.dead_stores.len() > DEAD_KEPT {
            let oldest = self.ray.index.dead_stores.remove_min();
            oldest.and_then(|oldest| self.ray.stores.remove(&oldest));
        }
    }

    /// What a process put and did not write will never come, unless its task puts it again.
    fn give_up_puts(&mut self, process: WorkerId) {
        let all = (process, ObjectId(0))..=(process, ObjectId(u64::MAX));
        let unwritten = self.ray.index.unwritten.range(all);
        self.unmade.extend(unwritten.map(|(_, object)| *object));
    }

    /// Has a delivery come from another store, if one is left. Otherwise it is begun anew when the object is there
    /// again.
    pub(crate) fn fetch_elsewhere(&mut self, object: ObjectId, to: StoreId, but: Option<StoreId>) {
        if !self.end_delivery(object, to) {
            return;
        }
        if let Some(source) = self.ray.source(&self.ray.objects[&object], but) {
            self.begin_delivery(object, to, source);
        } else {
            self.ray.wanted.insert((object, to));
            self.drop_one(object);
        }
    }

    /// Takes a driver's tasks out of the queue if nobody refers to what they make. A task is younger than those
    /// that make its arguments, so one pass from the youngest on finds all.
    fn cancel_unwanted(&mut self, driver: WorkerId) {
        let queued: Vec<OperationId> = self.ray.index.queue.waiting.keys().rev().copied().collect();
        for operation in queued {
            let Some(entry) = self.ray.entry(operation) else { continue };
            if entry.submitter != driver || entry.results.is_empty() {
                continue;
            }
            if entry.results.iter().all(|result| self.ray.is_unwanted_result(*result, &entry.holds)) {
                self.cancel(operation);
            }
        }
    }

    fn cancel(&mut self, operation: OperationId) {
        self.ray.dequeue(operation);
        let mut entry = self.ray.entry_mut(operation);
        entry.stage = Stage::Cancelled;
        entry.not_before = None;
        let (holds, results) = (std::mem::take(&mut entry.holds), entry.results.clone());
        drop(entry);
        self.ray.lineage_finish(operation);
        self.end_calls(operation);
        for result in results {
            let mut object = self.ray.object_mut(result);
            object.target = Target::Canonical;
            let made = std::mem::take(&mut object.creation);
            drop(object);
            if made {
                self.drop_one(result);
            }
        }
        for object in holds {
            self.drop_one(object);
        }
    }
}

impl Ray {
    fn is_unwanted_result(&self, result: ObjectId, holds: &[ObjectId]) -> bool {
        let Some(object) = self.objects.get(&result) else { return true };
        let own = holds.iter().filter(|held| **held == result).count() as u64 + u64::from(object.creation);
        object.count == own && self.index.trees.referenced(result).is_none()
    }

    fn reported_at(&self, store: StoreId) -> Vec<OperationId> {
        let all = (store, OperationId(0))..=(store, OperationId(u64::MAX));
        self.index.reported.range(all).map(|(_, operation)| *operation).collect()
    }

    fn forget_store_notices(&mut self, store: StoreId) {
        let notices: Vec<(ObjectId, StoreId, ObjectId)> =
            self.notices.iter().filter(|(_, to, _)| *to == store).copied().collect();
        for notice in notices {
            self.notices.remove(&notice);
        }
        let wanted: Vec<(ObjectId, StoreId)> =
            self.wanted.iter().filter(|(_, to)| *to == store).copied().collect();
        for want in wanted {
            self.wanted.remove(&want);
        }
    }
}
