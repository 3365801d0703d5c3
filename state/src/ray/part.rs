//! A scheduler in pieces, for snapshots. What is derived is not in them.

use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::ids::{Sequence, Term, TimeMs};
use crate::memory::{Weigh, Weighed};
use crate::ray::Ray;
use crate::ray::cancel::Cancelling;
use crate::ray::command::{Algorithm, Role};
use crate::ray::describe::Description;
use crate::ray::export::Export;
use crate::ray::function::{Function, Slot};
use crate::ray::ids::{ClientSession, ExportId, ObjectId, OperationId, OrderId, StoreId, WorkerId};
use crate::ray::object::{Object, Producer, Target};
use crate::ray::operation::{Kind, Operation, Stage};
use crate::ray::order::Order;
use crate::ray::peers::{Store, Worker};
use crate::ray::record::Next;
use crate::ray::report::FailedTask;
use crate::ray::resources::{Needs, Offers};
use crate::ray::session::Reply;
use crate::session::table::Session;

/// The first piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) next: Next,
    pub(crate) next_slot: Slot,
    pub(crate) next_export: ExportId,
    pub(crate) next_order: OrderId,
    pub(crate) algorithm: Algorithm,
    pub(crate) armed: Option<(Term, TimeMs)>,
    pub(crate) failures: u64,
    pub(crate) succeeded: u64,
    /// How many pieces follow.
    pub(crate) parts: u64,
}

/// One of the others, in the order of the variants and then of the ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Store(StoreId, Arc<Store>),
    Worker(WorkerId, Arc<Worker>),
    Idle(WorkerId),
    Function(Slot, Function),
    Export(ExportId, Option<crate::ray::ids::FunctionName>, Bytes),
    Operation(OperationId, Arc<Operation>),
    Object(ObjectId, Arc<Object>),
    Reference(WorkerId, ObjectId, u64),
    Gone(ObjectId, ObjectId),
    Notice(ObjectId, StoreId, ObjectId),
    Wanted(ObjectId, StoreId),
    Order(OrderId, Order),
    Failed(Arc<FailedTask>),
    /// Its replies follow.
    Session {
        id: ClientSession,
        last_used: TimeMs,
        floor: Sequence,
    },
    Reply {
        session: ClientSession,
        sequence: Sequence,
        reply: Reply,
    },
    /// How many tasks a worker may have beside those that take its slots. From level 4 on.
    Beside(WorkerId, u32),
    /// What a worker has. This and all that follow: from level 10 on.
    Offers(WorkerId, Offers),
    /// What a task needs.
    Needs(OperationId, Needs),
    /// A task that is to end.
    Cancelling(OperationId, Cancelling),
    /// What an object is.
    Description(ObjectId, Description),
    /// A task whose end somebody in the state waits for, and the worker that had its last attempt.
    Watched(OperationId, Option<WorkerId>),
}

impl Part {
    /// The place of its kind among the kinds.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Store(..) => 0,
            Self::Worker(..) => 1,
            Self::Idle(_) => 2,
            Self::Function(..) => 3,
            Self::Export(..) => 4,
            Self::Operation(..) => 5,
            Self::Object(..) => 6,
            Self::Reference(..) => 7,
            Self::Gone(..) => 8,
            Self::Notice(..) => 9,
            Self::Wanted(..) => 10,
            Self::Order(..) => 11,
            Self::Failed(_) => 12,
            Self::Session { .. } | Self::Reply { .. } => 13,
            Self::Beside(..) => 14,
            Self::Offers(..) => 15,
            Self::Needs(..) => 16,
            Self::Cancelling(..) => 17,
            Self::Description(..) => 18,
            Self::Watched(..) => 19,
        }
    }
}

impl Ray {
    pub(crate) fn head(&self) -> Head {
        let parts = self.stores.len()
            + self.workers.len()
            + self.idle.len()
            + self.functions.len()
            + self.exports.len()
            + self.operations.len()
            + self.objects.len()
            + self.references.len()
            + self.gone.len()
            + self.notices.len()
            + self.wanted.len()
            + self.outbox.len()
            + self.failed.len()
            + self.sessions.len()
            + self.sessions.replies()
            + self.beside.len()
            + self.offers.len()
            + self.demands.len()
            + self.cancelling.len()
            + self.descriptions.len()
            + self.watched.len();
        Head {
            next: self.next,
            next_slot: self.functions.next,
            next_export: self.exports.next,
            next_order: self.outbox.next,
            algorithm: self.algorithm,
            armed: self.armed,
            failures: self.failures,
            succeeded: self.succeeded,
            parts: parts as u64,
        }
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let stores = self.stores.iter().map(|(id, store)| Part::Store(*id, Arc::clone(store)));
        let workers = self.workers.iter().map(|(id, worker)| Part::Worker(*id, Arc::clone(worker)));
        let functions = self.functions.iter().map(|(slot, known)| Part::Function(*slot, known.clone()));
        let exports = self.exports.iter();
        let exports =
            exports.map(|(id, export)| Part::Export(*id, export.variable.clone(), export.body.clone()));
        let operations = self.operations.iter().map(|(id, found)| Part::Operation(*id, Arc::clone(found)));
        let objects = self.objects.iter().map(|(id, object)| Part::Object(*id, Arc::clone(object)));
        let references = self.references.iter();
        let references =
            references.map(|((process, object), count)| Part::Reference(*process, *object, *count));
        let notices = self.notices.iter().map(|(object, store, alias)| Part::Notice(*object, *store, *alias));
        let sessions = self.sessions.iter().flat_map(|(id, session)| {
            let head = Part::Session { id: *id, last_used: session.last_used, floor: session.floor };
            let reply = |(sequence, reply): (&Sequence, &Reply)| Part::Reply {
                session: *id,
                sequence: *sequence,
                reply: reply.clone(),
            };
            std::iter::once(head).chain(session.replies.iter().map(reply))
        });
        stores
            .chain(workers)
            .chain(self.idle.iter().map(|worker| Part::Idle(*worker)))
            .chain(functions)
            .chain(exports)
            .chain(operations)
            .chain(objects)
            .chain(references)
            .chain(self.gone.iter().map(|(id, meant)| Part::Gone(*id, *meant)))
            .chain(notices)
            .chain(self.wanted.iter().map(|(object, store)| Part::Wanted(*object, *store)))
            .chain(self.outbox.iter().map(|(id, order)| Part::Order(*id, order.clone())))
            .chain(self.failed.iter().map(|task| Part::Failed(Arc::clone(task))))
            .chain(sessions)
            .chain(self.beside.iter().map(|(worker, most)| Part::Beside(*worker, *most)))
            .chain(self.later_parts())
    }

    /// What came with level 10.
    fn later_parts(&self) -> impl Iterator<Item = Part> + '_ {
        let offers = self.offers.iter().map(|(id, offers)| Part::Offers(*id, Offers::clone(offers)));
        let needs = self.demands.iter().map(|(id, demand)| Part::Needs(*id, demand.needs()));
        let cancelling = self.cancelling.iter().map(|(id, known)| Part::Cancelling(*id, *known));
        let descriptions = self.descriptions.iter();
        let descriptions = descriptions.map(|(id, known)| Part::Description(*id, known.clone()));
        let watched = self.watched.iter().map(|(id, worker)| Part::Watched(*id, *worker));
        offers.chain(needs).chain(cancelling).chain(descriptions).chain(watched)
    }

    pub(crate) fn from_head(head: &Head) -> Self {
        let mut ray = Self {
            next: head.next,
            algorithm: head.algorithm,
            armed: head.armed,
            failures: head.failures,
            succeeded: head.succeeded,
            ..Self::default()
        };
        ray.functions.next = head.next_slot;
        ray.exports.next = head.next_export;
        ray.outbox.next = head.next_order;
        ray
    }

    /// Puts a piece in its place; `false` unless it comes after all others of its kind.
    #[must_use]
    pub(crate) fn add(&mut self, part: Part) -> bool {
        match part {
            Part::Store(id, store) => after_weighed(&mut self.stores, id, store),
            Part::Worker(id, worker) => after_weighed(&mut self.workers, id, worker),
            Part::Idle(worker) => {
                self.idle.push_back(worker);
                true
            }
            Part::Function(slot, function) => {
                let ascending = self.functions.iter().next_back().is_none_or(|(last, _)| *last < slot);
                let fresh = self.functions.slot(&function.name).is_none();
                self.functions.restore(slot, function);
                ascending && fresh
            }
            Part::Export(id, variable, body) => {
                let ascending = self.exports.iter().next_back().is_none_or(|(last, _)| *last < id);
                self.exports.restore(id, Arc::new(Export { variable, body }));
                ascending
            }
            Part::Operation(id, found) => after_weighed(&mut self.operations, id, found),
            Part::Object(id, object) => after_weighed(&mut self.objects, id, object),
            Part::Reference(process, object, count) => {
                after(&mut self.references, (process, object), count) && count > 0
            }
            Part::Gone(id, meant) => after(&mut self.gone, id, meant),
            Part::Notice(object, store, alias) => later(&mut self.notices, (object, store, alias)),
            Part::Wanted(object, store) => later(&mut self.wanted, (object, store)),
            Part::Order(id, order) => {
                let ascending = self.outbox.iter().next_back().is_none_or(|(last, _)| *last < id);
                self.outbox.restore(id, order);
                ascending
            }
            Part::Failed(task) => {
                self.keep_failure(task);
                true
            }
            Part::Session { id, last_used, floor } => {
                let ascending = self.sessions.iter().next_back().is_none_or(|(last, _)| *last < id);
                self.sessions.restore(id, Session { last_used, floor, replies: Weighed::default() });
                ascending
            }
            Part::Reply { session, sequence, reply } => self.sessions.restore_reply(session, sequence, reply),
            Part::Beside(worker, most) => after(&mut self.beside, worker, most),
            Part::Offers(worker, offers) => after_weighed(&mut self.offers, worker, Arc::new(offers)),
            Part::Needs(operation, needs) => {
                let ascending = self.demands.iter().next_back().is_none_or(|(last, _)| *last < operation);
                self.demands.note(operation, &needs);
                // One that says nothing is not kept.
                ascending && !needs.is_default()
            }
            Part::Cancelling(operation, known) => after(&mut self.cancelling, operation, known),
            Part::Description(object, known) => after_weighed(&mut self.descriptions, object, known),
            Part::Watched(operation, worker) => after(&mut self.watched, operation, worker),
        }
    }

    /// Counts and indexes from the pieces.
    ///
    /// # Errors
    /// What the pieces contradict each other in.
    pub(crate) fn derive(&mut self) -> Result<(), String> {
        self.check_pieces()?;
        self.derive_counts();
        self.derive_trees();
        self.derive_places();
        self.derive_operations();
        self.derive_peers();
        self.derive_queue();
        self.derive_lineage();
        Ok(())
    }

    /// What the derivation relies on.
    fn check_pieces(&self) -> Result<(), String> {
        let known = |object: &ObjectId| self.objects.contains_key(object);
        let inner = self.objects.values().flat_map(|object| object.contained.iter().flatten());
        let inner = inner.filter(|inner| inner.held).map(|inner| inner.object);
        let entries = || self.operations.values().filter_map(|found| found.entry());
        let held = entries().flat_map(|entry| entry.holds.iter().chain(&entry.kept).copied());
        let owned = self.references.keys().map(|(_, object)| *object);
        if let Some(object) = inner.chain(held).chain(owned).find(|object| !known(object)) {
            return Err(format!("somebody refers to object {object}, which is not there"));
        }
        for (id, object) in &self.objects {
            if let Target::To(target) = object.target
                && (!known(&target) || target == *id)
            {
                return Err(format!("object {id} means {target}, which is not there"));
            }
        }
        for entry in entries().filter(|entry| entry.stage == Stage::Queued) {
            if self.functions.slot(&entry.task.name).is_none() {
                return Err(format!("a queued task's function {} is not there", entry.task.name));
            }
        }
        for worker in &self.idle {
            if !self.workers.contains_key(worker) {
                return Err(format!("idle worker {worker} is not there"));
            }
        }
        Ok(())
    }

    fn derive_counts(&mut self) {
        let mut counts: std::collections::BTreeMap<ObjectId, u64> = std::collections::BTreeMap::new();
        for ((_, object), count) in &self.references {
            *counts.entry(*object).or_default() += count;
        }
        for found in self.operations.values() {
            for object in found.entry().iter().flat_map(|entry| entry.holds.iter().chain(&entry.kept)) {
                *counts.entry(*object).or_default() += 1;
            }
        }
        for (id, object) in &self.objects {
            let own = object.anonymous + object.transits.len() as u64 + u64::from(object.creation);
            *counts.entry(*id).or_default() += own;
            for inner in object.contained.iter().flatten().filter(|inner| inner.held) {
                *counts.entry(inner.object).or_default() += 1;
            }
        }
        let ids: Vec<ObjectId> = self.objects.keys().copied().collect();
        for id in ids {
            self.object_mut(id).count = counts.get(&id).copied().unwrap_or(0);
        }
    }

    fn derive_trees(&mut self) {
        let objects = &self.objects;
        let has = |id: ObjectId| objects.get(&id).is_some_and(|object| object.count > 0);
        for (id, object) in objects {
            if let Target::To(target) = object.target {
                self.index.trees.merge(*id, target, has);
            }
        }
    }

    fn derive_places(&mut self) {
        for (id, object) in &self.objects {
            if let (Producer::Put { by, .. }, true) = (object.producer, object.creation) {
                self.index.unwritten.insert((by, *id));
            }
            for location in &object.locations {
                self.index.locations.arrived(location.store, *id);
            }
            for transit in &object.transits {
                let source = crate::ray::delivery::store_of(transit.source);
                self.index.locations.departs(source, *id, transit.store);
            }
        }
    }

    fn derive_operations(&mut self) {
        let index = &mut self.index;
        for (id, found) in &self.operations {
            match &found.kind {
                Kind::Get { worker, object, waits: true } => {
                    index.getters.insert((*object, *id));
                    index.worker_gets.insert((*worker, *id));
                }
                Kind::Task(entry) => match entry.stage {
                    Stage::Running { .. } => index.running += 1,
                    Stage::Reported { store, .. } => drop(index.reported.insert((store, *id))),
                    Stage::Queued | Stage::Done | Stage::Failed | Stage::Cancelled => {}
                },
                Kind::Get { .. } | Kind::Put(_) => {}
            }
        }
    }

    fn derive_peers(&mut self) {
        let index = &mut self.index;
        for (id, worker) in &self.workers {
            if !worker.is_alive() {
                index.dead_workers.insert(*id);
                continue;
            }
            index.workers_alive += 1;
            if worker.role == Role::Worker {
                index.locations.count(worker.store, |tally| tally.workers += 1);
            }
        }
        for (id, _) in self.stores.iter().filter(|(_, store)| !store.is_alive()) {
            index.dead_stores.insert(*id);
        }
    }
}

/// Adds an entry; whether it comes after all others.
fn after<K: Ord + Clone, V: Clone>(map: &mut OrdMap<K, V>, key: K, value: V) -> bool {
    let ascending = map.get_max().is_none_or(|(last, _)| *last < key);
    map.insert(key, value);
    ascending
}

/// As [`after`].
fn after_weighed<K: Ord + Clone + Weigh, V: Clone + Weigh>(
    map: &mut Weighed<K, V>,
    key: K,
    value: V,
) -> bool {
    let ascending = map.get_max().is_none_or(|(last, _)| *last < key);
    map.insert(key, value);
    ascending
}

fn later<K: Ord + Clone>(set: &mut OrdSet<K>, key: K) -> bool {
    let ascending = set.get_max().is_none_or(|last| *last < key);
    set.insert(key);
    ascending
}
