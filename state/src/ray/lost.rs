//! Objects without a copy, and how they are made again.

use std::sync::Arc;

use crate::ids::TimeMs;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::ids::{ObjectId, OperationId};
use crate::ray::incident::Incident;
use crate::ray::object::{Object, Producer, Target};
use crate::ray::operation::Stage;
use crate::ray::view::Reason;

impl Act<'_> {
    /// The last copy of an object is gone. Its maker will say again what it contains.
    pub(crate) fn lose(&mut self, id: ObjectId) {
        self.end_deliveries(id);
        let Some(object) = self.ray.objects.get(&id) else { return };
        if object.contained.is_some() {
            let contained = self.ray.object_mut(id).contained.take();
            for inner in contained.into_iter().flatten().filter(|inner| inner.held) {
                self.drop_one(inner.object);
            }
        }
        self.lost.push_back(id);
    }

    /// Sees to it that an object without a copy is made again, or is known to be lost for good.
    pub(crate) fn make_again(&mut self, id: ObjectId) {
        if !self.ray.is_awaited(id) {
            return;
        }
        let Producer::Task(operation) = self.ray.objects[&id].producer else {
            self.unmade.push_back(id);
            return;
        };
        let Some(entry) = self.ray.entry(operation).filter(|entry| !entry.evicted) else {
            self.failing.push_back((id, Reason::LineageEvicted));
            return;
        };
        if matches!(entry.stage, Stage::Queued | Stage::Running { .. }) {
            return;
        }
        if entry.was_cancelled() {
            self.failing.push_back((id, Reason::Cancelled));
            return;
        }
        if entry.options.max_retries == Some(0) {
            self.failing.push_back((id, Reason::ReconstructionDisabled));
        } else if entry.may_retry() {
            let function = entry.task.name.clone();
            self.ray.incidents.push(Incident::Rebuilt { function });
            self.try_again(operation, "its results were lost");
        } else {
            self.failing.push_back((id, Reason::RetriesExhausted));
        }
    }

    /// An object that a task needs again, though nothing referred to it any more, is one again that is to be made.
    pub(crate) fn revive(&mut self, id: ObjectId) {
        if self.ray.objects.contains_key(&id) {
            return;
        }
        let maker = self.ray.index.lineage.maker(id).expect("it was checked that somebody makes it");
        self.ray.revive_as(id, maker, self.now);
        self.lost.push_back(id);
    }
}

impl Ray {
    /// Whether an object is there, or can be made again.
    pub(crate) fn can_revive(&self, id: ObjectId) -> bool {
        self.objects.contains_key(&id) || self.index.lineage.maker(id).is_some()
    }

    pub(crate) fn revive_as(&mut self, id: ObjectId, maker: OperationId, now: TimeMs) {
        let object = Object { freed_ms: Some(now), ..Object::new(Producer::Task(maker)) };
        self.objects.insert(id, Arc::new(object));
        self.gone.remove(&id);
        self.lineage_back(id);
    }

    /// Whether an object was made, and no copy is left.
    pub(crate) fn is_lost(&self, id: ObjectId) -> bool {
        let object = self.objects.get(&id);
        object.is_some_and(|object| object.target == Target::Canonical) && self.is_awaited(id)
    }
}
