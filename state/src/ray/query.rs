//! What a scheduler shows.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::ray::Ray;
use crate::ray::command::{Peer, Role, Run};
use crate::ray::ids::{ExportId, ObjectId, OperationId, OrderId, StoreId, WorkerId};
use crate::ray::limits::SHOWN_MAX;
use crate::ray::object::Target;
use crate::ray::operation::{Entry, Kind, Operation, Stage};
use crate::ray::order::Order;
use crate::ray::peers;
use crate::ray::queue::Waiting;
use crate::ray::resources::Class;
use crate::ray::view;

impl Ray {
    /// Orders that are still to be carried out, after the given one, in ascending order, at most `most`.
    #[must_use]
    pub fn orders(&self, after: Option<OrderId>, most: usize) -> Vec<(OrderId, Order)> {
        self.outbox.after(after).take(most).map(|(id, order)| (*id, order.clone())).collect()
    }

    /// Whether an order is still to be carried out.
    #[must_use]
    pub fn has_order(&self, order: OrderId) -> bool {
        self.outbox.get(order).is_some()
    }

    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<view::Worker> {
        self.workers.get(&worker).map(|found| show_worker(worker, found))
    }

    #[must_use]
    pub fn store(&self, store: StoreId) -> Option<view::Store> {
        self.stores.get(&store).map(|found| self.show_store(store, found))
    }

    /// All workers and drivers that are remembered, by id.
    #[must_use]
    pub fn workers(&self) -> Vec<view::Worker> {
        self.workers.iter().map(|(id, worker)| show_worker(*id, worker)).collect()
    }

    /// All stores that are remembered, by id.
    #[must_use]
    pub fn stores(&self) -> Vec<view::Store> {
        self.stores.iter().map(|(id, store)| self.show_store(*id, store)).collect()
    }

    /// What an order to execute is about; `None` if that attempt is not the current one any more.
    #[must_use]
    pub fn execution(&self, run: Run) -> Option<view::Execution> {
        let entry = self.entry(run.operation)?;
        if !entry.is_run(run) || !matches!(entry.stage, Stage::Running { .. }) {
            return None;
        }
        Some(view::Execution {
            name: entry.task.name.clone(),
            arguments: entry.task.arguments.clone(),
            results: entry.results.clone(),
            store_output: entry.results.iter().map(|result| self.is_awaited(*result)).collect(),
        })
    }

    #[must_use]
    pub fn export(&self, export: ExportId) -> Option<view::Export> {
        let found = self.exports.get(export)?;
        let body = found.body.clone();
        Some(if found.variable.is_some() {
            view::Export::Variable(body)
        } else {
            view::Export::Function(body)
        })
    }

    /// What became of an object, or of the one that it means; `None`: there is no such id.
    #[must_use]
    pub fn availability(&self, object: ObjectId) -> Option<view::Availability> {
        if object >= self.next.object {
            return None;
        }
        if !self.objects.contains_key(&object) {
            return Some(view::Availability::Deallocated);
        }
        let end = &self.objects[&self.index.trees.end(object)];
        Some(match &end.failure {
            Some(failure) => view::Availability::Failed(view::Failure::clone(failure)),
            None if self.available(object).is_some() => view::Availability::Ready,
            None => view::Availability::Pending,
        })
    }

    #[must_use]
    pub fn info(&self) -> view::Info {
        let functions = self.functions.sorted();
        let functions = functions
            .map(|known| (known.name.clone(), known.results, known.workers.iter().copied().collect()))
            .collect();
        let base_object = self.base_object();
        let objects = || (base_object..self.next.object.0).map(ObjectId);
        let base_operation = self.base_operation();
        let operations = (base_operation..self.next.operation.0).map(OperationId);
        view::Info {
            queue: self.index.queue.waiting.keys().copied().collect(),
            idle: self.idle.iter().copied().collect(),
            functions,
            base_object,
            targets: objects().map(|id| self.meaning(id)).collect(),
            counts: objects().map(|id| self.objects.get(&id).map(|object| object.count)).collect(),
            base_operation,
            graph: operations.map(|id| self.show_operation(id)).collect(),
        }
    }

    #[must_use]
    pub fn task_info(&self) -> view::TaskInfo {
        let failed = self.failed.iter().map(|task| view::TaskStatus {
            operation: task.operation,
            name: task.name.clone(),
            worker: task.worker.clone(),
            error: task.error.clone(),
        });
        let running = self.workers.values().flat_map(|worker| {
            worker.running.iter().filter_map(|run| {
                let name = self.entry(run.operation)?.task.name.clone();
                let (operation, worker) = (run.operation, worker.address());
                Some(view::TaskStatus { operation, name, worker, error: Bytes::new() })
            })
        });
        view::TaskInfo { failed: failed.collect(), running: running.collect(), succeeded: self.succeeded }
    }

    /// Tasks, newest first, at most `most`; of one state or of all.
    #[must_use]
    pub fn tasks(&self, state: Option<view::TaskState>, most: usize) -> Vec<view::ListedTask> {
        let mut held = BTreeMap::new();
        let tasks = self.operations.iter().rev();
        let tasks = tasks.filter_map(|(id, found)| Some((id, found.entry()?)));
        let tasks = tasks.map(|(id, entry)| self.list(*id, entry, &mut held));
        tasks.filter(|task| state.is_none_or(|state| task.state == state)).take(most).collect()
    }

    /// Counts, for people and metrics. It goes through all objects.
    #[must_use]
    pub fn totals(&self) -> view::Totals {
        let failed = self.objects.values().filter(|object| object.failure.is_some()).count();
        let pending = self.objects.keys().filter(|id| self.is_awaited(**id)).count();
        view::Totals {
            queued: self.index.queue.waiting.len() as u64,
            running: self.index.running,
            succeeded: self.succeeded,
            failed: self.failures,
            objects_live: self.objects.len() as u64,
            objects_pending: pending as u64,
            objects_failed: failed as u64,
            gets: self.index.getters.len() as u64,
            orders: self.outbox.len() as u64,
            functions: self.functions.len() as u64,
            exports: self.exports.len() as u64,
            lineage_bytes: self.index.lineage.bytes(),
        }
    }

    /// How much there is of what, without looking at every object.
    #[must_use]
    pub fn counts(&self) -> view::Counts {
        let drivers = self.workers.values().filter(|worker| worker.is_alive() && worker.role == Role::Driver);
        view::Counts {
            workers: self.index.workers_alive - drivers.count() as u64,
            stores: (self.stores.len() - self.index.dead_stores.len()) as u64,
            queued: self.index.queue.waiting.len() as u64,
            running: self.index.running,
            succeeded: self.succeeded,
            failed: self.failures,
            objects: self.objects.len() as u64,
            orders: self.outbox.len() as u64,
        }
    }

    /// The living peers whose silence is measured.
    #[must_use]
    pub fn watched(&self) -> Vec<view::Watched> {
        let workers = self.workers.iter().filter(|(_, worker)| worker.is_alive());
        let workers = workers.map(|(id, worker)| view::Watched {
            peer: Peer::Worker(*id),
            address: worker.address(),
            extended: worker.extended,
            since_ms: worker.since_ms,
        });
        let stores = self.stores.iter().filter(|(_, store)| store.is_alive());
        let stores = stores.map(|(id, store)| view::Watched {
            peer: Peer::Store(*id),
            address: store.address.clone(),
            extended: false,
            since_ms: store.since_ms,
        });
        workers.chain(stores).collect()
    }

    fn show_store(&self, id: StoreId, store: &peers::Store) -> view::Store {
        let tally = self.index.locations.tally(id);
        view::Store {
            id,
            address: store.address.clone(),
            alive: store.is_alive(),
            objects: tally.objects,
            in_transit: tally.incoming,
        }
    }

    /// `held`: which classes some worker has, as far as that was looked for.
    fn list(&self, id: OperationId, entry: &Entry, held: &mut BTreeMap<Class, bool>) -> view::ListedTask {
        let worker = match entry.stage {
            Stage::Running { worker, .. } => Some(worker),
            _ => None,
        };
        let ready = self.index.queue.waiting.get(&id).is_some_and(Waiting::is_ready);
        let state = match entry.stage {
            Stage::Queued if ready => view::TaskState::Queued,
            Stage::Queued => view::TaskState::Waiting,
            Stage::Running { .. } => view::TaskState::Running,
            Stage::Reported { .. } => view::TaskState::Reported,
            Stage::Done => view::TaskState::Done,
            Stage::Failed => view::TaskState::Failed,
            Stage::Cancelled => view::TaskState::Cancelled,
        };
        let in_vain = match entry.stage {
            Stage::Queued => self.wants_in_vain(id, held),
            _ => None,
        };
        view::ListedTask {
            id,
            name: entry.task.name.clone(),
            state,
            attempts: entry.attempts(),
            worker,
            error: in_vain.map_or_else(|| entry.error.clone(), Bytes::from),
            history: entry.endings(),
        }
    }

    fn show_operation(&self, id: OperationId) -> view::Operation {
        let Some(found) = self.operations.get(&id) else {
            return view::Operation { id, creator: view::Creator::Nobody, kind: view::Kind::Forgotten };
        };
        view::Operation { id, creator: found.creator, kind: show_kind(found) }
    }

    /// What an id means or meant, as far as that is remembered.
    fn meaning(&self, id: ObjectId) -> Option<ObjectId> {
        match self.objects.get(&id) {
            None => self.gone.get(&id).copied(),
            Some(object) => match object.target {
                Target::Unknown => None,
                Target::Canonical => Some(id),
                Target::To(target) => Some(target),
            },
        }
    }

    /// 0 as long as everything is remembered, then the first that is.
    fn base_object(&self) -> u64 {
        let live = self.objects.get_min().map(|(id, _)| id.0);
        let gone = self.gone.get_min().map(|(id, _)| id.0);
        let first = live.into_iter().chain(gone).min().unwrap_or(self.next.object.0);
        first.max(self.next.object.0.saturating_sub(SHOWN_MAX))
    }

    fn base_operation(&self) -> u64 {
        let first = self.operations.get_min().map_or(self.next.operation.0, |(id, _)| id.0);
        first.max(self.next.operation.0.saturating_sub(SHOWN_MAX))
    }
}

fn show_worker(id: WorkerId, worker: &peers::Worker) -> view::Worker {
    let life = match &worker.death {
        Some(why) => view::WorkerLife::Dead(why.clone()),
        None if worker.role == Role::Driver || !worker.initialised => view::WorkerLife::Registered,
        None if worker.running.is_empty() => view::WorkerLife::Idle,
        None => view::WorkerLife::Busy,
    };
    view::Worker {
        id,
        role: worker.role,
        address: worker.address(),
        store: worker.store,
        attributed: worker.attributed,
        extended: worker.extended,
        life,
        running: worker.running.clone(),
    }
}

fn show_kind(operation: &Operation) -> view::Kind {
    match &operation.kind {
        Kind::Task(entry) => view::Kind::Task {
            name: entry.task.name.clone(),
            arguments: entry.task.arguments.clone(),
            results: entry.results.clone(),
        },
        Kind::Put(object) => view::Kind::Put(*object),
        Kind::Get { object, .. } => view::Kind::Get(*object),
    }
}
