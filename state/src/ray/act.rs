//! One command's work on one scheduler.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ids::{FeatureLevel, TimeMs};
use crate::level::Rule;
use crate::memory::Edit;
use crate::ray::Ray;
use crate::ray::apply::Moment;
use crate::ray::command::{Origin, Role, TaskCall};
use crate::ray::ids::{ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::object::Object;
use crate::ray::operation::Entry;
use crate::ray::peers::{Store, Worker};
use crate::ray::refusal::Refusal;
use crate::ray::view::{Creator, Reason};

/// A scheduler while a command changes it. What follows from a change but must not happen in its middle is noted,
/// and done by [`Act::settle`].
pub(crate) struct Act<'a> {
    pub(crate) ray: &'a mut Ray,
    pub(crate) now: TimeMs,
    level: FeatureLevel,
    /// Objects that lost their last copy.
    pub(crate) lost: VecDeque<ObjectId>,
    /// Objects without a copy that a process put.
    pub(crate) unmade: VecDeque<ObjectId>,
    /// Objects that cannot be had, and why.
    pub(crate) failing: VecDeque<(ObjectId, Reason)>,
    /// Queued tasks whose argument cannot be had.
    pub(crate) doomed: VecDeque<(OperationId, ObjectId)>,
}

/// Who owns a reference that a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Process(WorkerId),
    /// A process that does not say who it is.
    Nobody,
}

impl<'a> Act<'a> {
    pub(crate) fn new(ray: &'a mut Ray, Moment { now, level }: Moment) -> Self {
        let (lost, unmade) = (VecDeque::new(), VecDeque::new());
        Self { ray, now, level, lost, unmade, failing: VecDeque::new(), doomed: VecDeque::new() }
    }

    /// Whether a rule that came with a level holds.
    pub(crate) fn follows(&self, rule: Rule) -> bool {
        rule.holds_at(self.level)
    }

    /// Lets go of what nobody needs any more. Comes after what changed something: a refusal changes nothing.
    pub(crate) fn tidy(&mut self) {
        if self.follows(Rule::LastExports) {
            self.ray.exports.drop_replaced(&self.ray.outbox);
        }
    }

    /// Does what follows from the changes, until nothing does. Objects that fail come before those that are lost,
    /// so that nothing is made again for what cannot be made. What was put comes last: its task may run again, and put
    /// it again.
    pub(crate) fn settle(&mut self) {
        loop {
            if let Some((object, reason)) = self.failing.pop_front() {
                self.fail_object(object, reason);
            } else if let Some((operation, argument)) = self.doomed.pop_front() {
                self.fail_task(operation, Reason::DependencyFailed(argument));
            } else if let Some(object) = self.lost.pop_front() {
                self.make_again(object);
            } else if let Some(object) = self.unmade.pop_front() {
                self.fail_put(object);
            } else {
                return;
            }
        }
    }

    /// Whose the references of a request's process are.
    pub(crate) fn owner(&self, origin: Origin) -> Result<Owner, Refusal> {
        let Some(process) = origin.process else { return Ok(Owner::Nobody) };
        Ok(self.ray.owner_of(process, self.ray.living(process)?))
    }
}

impl Ray {
    pub(crate) fn owner_of(&self, id: WorkerId, worker: &Worker) -> Owner {
        if worker.attributed { Owner::Process(id) } else { Owner::Nobody }
    }

    /// A worker or driver that lives.
    pub(crate) fn living(&self, id: WorkerId) -> Result<&Worker, Refusal> {
        match self.workers.get(&id) {
            Some(worker) if worker.is_alive() => Ok(worker),
            None if id >= self.next.worker => Err(Refusal::WorkerUnknown { worker: id }),
            Some(_) | None => Err(Refusal::WorkerExpired { worker: id }),
        }
    }

    /// A worker that lives, and is no driver.
    pub(crate) fn executor(&self, id: WorkerId) -> Result<&Worker, Refusal> {
        let worker = self.living(id)?;
        if worker.role == Role::Driver { Err(Refusal::IsDriver { worker: id }) } else { Ok(worker) }
    }

    pub(crate) fn living_store(&self, id: StoreId) -> Result<&Store, Refusal> {
        match self.stores.get(&id) {
            Some(store) if store.is_alive() => Ok(store),
            None if id >= self.next.store => Err(Refusal::StoreUnknown { store: id }),
            Some(_) | None => Err(Refusal::StoreExpired { store: id }),
        }
    }

    /// An object that something refers to.
    pub(crate) fn object(&self, id: ObjectId) -> Result<&Object, Refusal> {
        match self.objects.get(&id) {
            Some(object) => Ok(object),
            None if id >= self.next.object => Err(Refusal::ObjectUnknown { object: id }),
            None => Err(Refusal::ObjectDeallocated { object: id }),
        }
    }

    /// Which task the calls of a process are made in.
    pub(crate) fn creator(&self, worker: &Worker, call: Option<TaskCall>) -> Result<Creator, Refusal> {
        let named = call.and_then(|call| call.run);
        match (worker.role, named, worker.running.first()) {
            (Role::Driver, ..) => Ok(Creator::Root),
            (Role::Worker, Some(run), _) if worker.running.contains(&run) => Ok(Creator::Task(run.operation)),
            (Role::Worker, Some(run), _) => Err(Refusal::OtherAttempt { operation: run.operation }),
            (Role::Worker, None, Some(run)) => Ok(Creator::Task(run.operation)),
            (Role::Worker, None, None) => Ok(Creator::Nobody),
        }
    }

    pub(crate) fn entry(&self, operation: OperationId) -> Option<&Entry> {
        self.operations.get(&operation)?.entry()
    }

    pub(crate) fn entry_mut(&mut self, operation: OperationId) -> Edit<'_, Entry> {
        let (found, total) = self.operations.slot(&operation).expect("the task is recorded");
        Edit::new(Arc::make_mut(found).entry_mut().expect("the operation is a task"), total)
    }

    pub(crate) fn object_mut(&mut self, id: ObjectId) -> Edit<'_, Object> {
        let (found, total) = self.objects.slot(&id).expect("the object is referred to");
        Edit::new(Arc::make_mut(found), total)
    }

    pub(crate) fn worker_mut(&mut self, id: WorkerId) -> Edit<'_, Worker> {
        let (found, total) = self.workers.slot(&id).expect("the worker is remembered");
        Edit::new(Arc::make_mut(found), total)
    }
}
