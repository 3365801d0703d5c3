//! What the calls of a task made, and finds again when the task runs again.
//!
//! The n-th call of a later attempt gets the ids of the first one, so what an earlier attempt has begun is not begun
//! once more. Between two attempts nobody may refer to it: the worker that did is dead. So the task itself does, until
//! an attempt comes to its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::{Origin, Run, TaskCall};
use crate::ray::ids::{ObjectId, OperationId, WorkerId};
use crate::ray::limits::{CHILDREN_MAX, OBJECTS_MAX, at_most};
use crate::ray::object::{Object, Producer, Target};
use crate::ray::operation::{Child, Entry, Kind, Operation, Stage};
use crate::ray::refusal::Refusal;
use crate::ray::view::{Creator, Reason};

impl Act<'_> {
    pub(crate) fn put(
        &mut self,
        origin: Origin,
        worker: WorkerId,
        child: Option<TaskCall>,
        hold: bool,
    ) -> Result<Answer, Refusal> {
        let owner = if hold { Some(self.owner(origin)?) } else { None };
        let (object, present) = self.object_of_put(worker, child)?;
        if let Some(owner) = owner {
            self.ray.own(owner, object);
            self.ray.grow(object);
        }
        Ok(Answer::Object { object, present })
    }

    fn object_of_put(
        &mut self,
        worker: WorkerId,
        child: Option<TaskCall>,
    ) -> Result<(ObjectId, bool), Refusal> {
        let caller = self.ray.living(worker)?;
        let creator = self.ray.creator(caller, child)?;
        let run = child.and_then(|call| call.run.or(caller.running.first().copied()));
        if let Some(object) = self.ray.put_before(creator, child) {
            return self.put_again(object, worker, run);
        }
        at_most("objects", self.ray.objects.len() as u64 + 1, OBJECTS_MAX)?;
        let object = self.ray.new_object(Producer::Put { by: worker, run });
        self.ray.index.unwritten.insert((worker, object));
        let operation = self.ray.new_operation(Operation { creator, kind: Kind::Put(object) });
        self.ray.show(operation);
        self.ray.remember_child(creator, child, Child { operation, digest: 0, object: Some(object) });
        Ok((object, false))
    }

    /// The caller writes it, unless it is there. An object to which nothing referred any more is one again: its id is
    /// in the arguments of calls that are to be recognised.
    fn put_again(
        &mut self,
        id: ObjectId,
        by: WorkerId,
        run: Option<Run>,
    ) -> Result<(ObjectId, bool), Refusal> {
        if !self.ray.objects.contains_key(&id) {
            at_most("objects", self.ray.objects.len() as u64 + 1, OBJECTS_MAX)?;
            let object = Object { freed_ms: Some(self.now), ..Object::new(Producer::Put { by, run }) };
            self.ray.objects.insert(id, Arc::new(object));
            self.ray.gone.remove(&id);
            self.ray.index.unwritten.insert((by, id));
            return Ok((id, false));
        }
        let mut object = self.ray.object_mut(id);
        let before = std::mem::replace(&mut object.producer, Producer::Put { by, run });
        let unwritten = object.creation;
        drop(object);
        if let (Producer::Put { by: before, .. }, true) = (before, unwritten) {
            self.ray.index.unwritten.remove(&(before, id));
            self.ray.index.unwritten.insert((by, id));
        }
        Ok((id, self.ray.available(id).is_some()))
    }

    /// A task will run again: it takes a reference to everything that its calls made and that is still there.
    pub(crate) fn keep_calls(&mut self, operation: OperationId) {
        let entry = self.ray.entry(operation).expect("only recorded tasks are tried again");
        let kept: BTreeSet<ObjectId> = entry.kept.iter().copied().collect();
        let mut made = self.ray.made_by_calls(entry);
        made.retain(|object| self.ray.objects.contains_key(object) && !kept.contains(object));
        for object in &made {
            self.ray.grow(*object);
        }
        self.ray.entry_mut(operation).kept.extend(made);
    }

    /// An attempt has come to its end, and no other one begins: what the task's calls made is its clients' alone, and
    /// what it put and nobody has written will not be.
    pub(crate) fn end_calls(&mut self, operation: OperationId) {
        let Some(entry) = self.ray.entry(operation) else { return };
        if entry.children.is_empty() && entry.kept.is_empty() {
            return;
        }
        let puts: Vec<ObjectId> = entry.children.values().filter_map(|child| child.object).collect();
        self.unmade.extend(puts.into_iter().filter(|put| self.ray.is_given_up(*put)));
        let kept = std::mem::take(&mut self.ray.entry_mut(operation).kept);
        for object in kept {
            self.drop_one(object);
        }
    }

    /// A put that has no copy fails, unless the task that put it will do so again.
    pub(crate) fn fail_put(&mut self, id: ObjectId) {
        if self.ray.is_awaited(id) && !self.ray.may_be_put_again(id) {
            self.failing.push_back((id, Reason::PutObject));
        }
    }
}

impl Ray {
    /// What the same call of an earlier attempt put, unless that is lost for good. What a store is just being told to
    /// free is left alone: it might free what is written anew.
    fn put_before(&self, creator: Creator, child: Option<TaskCall>) -> Option<ObjectId> {
        let object = self.child(creator, child)?.object?;
        let is_usable = match self.objects.get(&object) {
            Some(found) => found.failure.is_none(),
            None => !self.stores.keys().any(|store| self.outbox.is_freeing(*store, object)),
        };
        is_usable.then_some(object)
    }

    /// Whether an object was put by a call of a task whose next attempt has still to make that call.
    pub(crate) fn may_be_put_again(&self, id: ObjectId) -> bool {
        let producer = self.objects.get(&id).map(|object| object.producer);
        let Some(Producer::Put { run: Some(run), .. }) = producer else { return false };
        self.entry(run.operation).is_some_and(|entry| match entry.stage {
            Stage::Queued => true,
            Stage::Running { .. } => entry.attempt > run.attempt,
            Stage::Reported { .. } | Stage::Done | Stage::Failed | Stage::Cancelled => false,
        })
    }

    /// Whether a put has no copy and its writer cannot be waited for.
    fn is_given_up(&self, id: ObjectId) -> bool {
        let Some(object) = self.objects.get(&id) else { return false };
        let writes = |by: WorkerId| object.target == Target::Unknown && self.living(by).is_ok();
        match object.producer {
            Producer::Put { by, .. } => self.is_awaited(id) && !writes(by),
            Producer::Task(_) => false,
        }
    }

    /// The objects that a task's calls put and those that its children make, each once.
    fn made_by_calls(&self, entry: &Entry) -> Vec<ObjectId> {
        let mut made: Vec<ObjectId> = Vec::new();
        for child in entry.children.values() {
            match child.object {
                Some(object) => made.push(object),
                None => made.extend(self.entry(child.operation).iter().flat_map(|entry| &entry.results)),
            }
        }
        made.sort_unstable();
        made.dedup();
        made
    }

    pub(crate) fn child(&self, creator: Creator, child: Option<TaskCall>) -> Option<Child> {
        let Creator::Task(parent) = creator else { return None };
        self.entry(parent)?.children.get(&child?.place).copied()
    }

    pub(crate) fn remember_child(&mut self, creator: Creator, call: Option<TaskCall>, child: Child) {
        let (Creator::Task(parent), Some(TaskCall { place, .. })) = (creator, call) else { return };
        if self.entry(parent).is_none() {
            return;
        }
        let children = &mut self.entry_mut(parent).children;
        if children.len() < CHILDREN_MAX || children.contains_key(&place) {
            children.insert(place, child);
        }
    }
}
