//! What stores say they have.

use crate::ids::TimeMs;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::Run;
use crate::ray::graph_task::End;
use crate::ray::ids::{ObjectId, OperationId, StoreId};
use crate::ray::object::{Location, Object, Producer, Target};
use crate::ray::operation::Stage;
use crate::ray::refusal::Refusal;

impl Act<'_> {
    /// The first store that has a whole object made it; later ones fetched it.
    pub(crate) fn ready(
        &mut self,
        id: ObjectId,
        store: StoreId,
        run: Option<Run>,
    ) -> Result<Answer, Refusal> {
        self.ray.living_store(store)?;
        let object = match self.ray.object(id) {
            // A task that runs again makes all its results, also those that nobody needs any more.
            Err(Refusal::ObjectDeallocated { .. }) if run.is_some() => {
                self.ray.outbox.free(store, id);
                return Ok(Answer::Done);
            }
            found => found?,
        };
        if let Target::To(target) = object.target {
            if !self.ray.may_point_anew(id, run) || self.ray.check_run(run).is_err() {
                return Err(Refusal::ReadyAlias { object: id, target });
            }
            self.detach(id);
        }
        self.stored(id, store);
        Ok(Answer::Done)
    }

    /// A store has an object that means nothing else.
    pub(crate) fn stored(&mut self, id: ObjectId, store: StoreId) {
        let object = &self.ray.objects[&id];
        if object.is_at(store) {
            return;
        }
        let awaited = object.transit_to(store).is_some();
        if !awaited && self.ray.is_unwanted(object) {
            self.ray.outbox.free(store, id);
            return;
        }
        self.ray.outbox.keep(store, id);
        let members = self.ray.index.trees.members(id);
        let since_ms = self.now;
        self.ray.shift(&members, |ray| ray.place(id, Location { store, since_ms }));
        let delivered = self.end_delivery(id, store);
        let made = std::mem::take(&mut self.ray.object_mut(id).creation);
        let producer = self.ray.objects[&id].producer;
        match producer {
            Producer::Put { by, .. } if made => drop(self.ray.index.unwritten.remove(&(by, id))),
            Producer::Put { .. } | Producer::Task(_) => {}
        }
        for _ in 0..u8::from(delivered) + u8::from(made) {
            self.drop_one(id);
        }
        if self.ray.objects.contains_key(&id) {
            self.notify(id, store);
            self.serve(&members);
            self.redeliver(id);
        }
        if let Producer::Task(operation) = producer {
            self.judge_task(operation);
        }
    }

    /// An object came to be: its task may be complete.
    pub(crate) fn judge_maker(&mut self, id: ObjectId) {
        let Some(object) = self.ray.objects.get(&id) else { return };
        let Producer::Task(operation) = object.producer else { return };
        self.judge_task(operation);
    }

    /// A task is complete when its end was reported and all its results came to be.
    pub(crate) fn judge_task(&mut self, operation: OperationId) {
        let Some(entry) = self.ray.entry(operation) else { return };
        let Stage::Reported { succeeded, store } = entry.stage else { return };
        if entry.results.iter().any(|result| self.ray.is_awaited(*result)) {
            return;
        }
        self.ray.index.reported.remove(&(store, operation));
        let stage = if succeeded { Stage::Done } else { Stage::Failed };
        self.ray.entry_mut(operation).stage = stage;
        let lost = self.ray.lost_result(operation);
        self.ray.end_watch(operation, lost.map_or(End::Done, End::GivenUp));
        self.ray.lineage_finish(operation);
    }
}

impl Ray {
    fn place(&mut self, id: ObjectId, location: Location) {
        let mut object = self.object_mut(id);
        object.target = Target::Canonical;
        object.add_location(location);
        drop(object);
        self.index.locations.arrived(location.store, id);
    }

    /// Whether a copy that nobody ordered is not to be kept: the object failed for good, or was made by an earlier
    /// attempt and has a copy of that.
    fn is_unwanted(&self, object: &Object) -> bool {
        let again = match object.producer {
            Producer::Task(operation) => self.entry(operation).is_some_and(|entry| entry.attempt.0 > 1),
            Producer::Put { run, .. } => run.is_some_and(|run| run.attempt.0 > 1),
        };
        object.failure.is_some() || (again && !object.creation && !object.locations.is_empty())
    }

    /// Whether a result is still to come: it was neither made nor said to mean another one, or was lost since.
    pub(crate) fn is_awaited(&self, result: ObjectId) -> bool {
        let Some(object) = self.objects.get(&result) else { return false };
        match object.target {
            Target::Unknown => true,
            Target::To(_) => false,
            Target::Canonical => object.failure.is_none() && object.locations.is_empty(),
        }
    }

    /// A store does not have an object any more.
    pub(crate) fn displace(&mut self, id: ObjectId, store: StoreId) {
        let members = self.index.trees.members(id);
        self.shift(&members, |ray| {
            if ray.object_mut(id).remove_location(store) {
                ray.index.locations.left(store, id);
            }
        });
    }

    /// Since when a store has an object.
    pub(crate) fn placed_since(&self, id: ObjectId, store: StoreId) -> Option<TimeMs> {
        let object = self.objects.get(&id)?;
        object.locations.iter().find(|location| location.store == store).map(|location| location.since_ms)
    }
}
