//! Ids that mean another object no more: what they meant was lost with the attempt that said so, and a later attempt
//! of their task says what they mean now.

use std::collections::{BTreeMap, BTreeSet};

use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::command::Run;
use crate::ray::ids::{ObjectId, StoreId};
use crate::ray::object::{Producer, Target};
use crate::ray::operation::Stage;

impl Act<'_> {
    /// Lets an id mean nothing again, though others may mean it. Whoever waits for it waits on.
    pub(crate) fn detach(&mut self, alias: ObjectId) {
        let end = self.ray.index.trees.end(alias);
        let members = self.ray.index.trees.members(alias);
        let below = self.ray.pointing_at(alias, &members);
        let mut object = self.ray.object_mut(alias);
        object.target = Target::Unknown;
        object.creation = true;
        drop(object);
        self.ray.grow(alias);
        self.ray.index.trees.remove(end);
        for member in members {
            if let Target::To(target) = self.ray.objects[&member].target {
                let objects = &self.ray.objects;
                let has = |id: ObjectId| objects.get(&id).is_some_and(|object| object.count > 0);
                self.ray.index.trees.merge(member, target, has);
            }
        }
        for (store, name) in self.ray.take_wishes(end, |name| below.contains(&name)) {
            self.ray.wish(alias, store, name);
        }
        self.release(end);
    }

    /// An id that meant nothing means an object now: stores that were to have what it means are to have that.
    pub(crate) fn pass_wishes_on(&mut self, alias: ObjectId) {
        let end = self.ray.index.trees.end(alias);
        for (store, name) in self.ray.take_wishes(alias, |_| true) {
            if self.ray.can_bring(end) {
                self.bring(name, store);
            } else {
                self.ray.wish(end, store, name);
            }
        }
    }

    /// What cannot be had any more: ids that mean it because an earlier attempt of a task said so, and that the task
    /// will make anew, do not mean it any more.
    pub(crate) fn detach_from_lost(&mut self, end: ObjectId) {
        for member in self.ray.index.trees.members(end) {
            if member != end && self.ray.index.trees.same(member, end) && self.ray.is_made_anew(member) {
                self.detach(member);
            }
        }
    }
}

impl Ray {
    /// Whether a later attempt of an id's task may say what the id means in place of an earlier one: what that one
    /// said is lost, and is not there again yet.
    pub(crate) fn may_point_anew(&self, alias: ObjectId, run: Option<Run>) -> bool {
        let (Some(run), Some(object)) = (run, self.objects.get(&alias)) else { return false };
        run.attempt.0 > 1
            && object.producer == Producer::Task(run.operation)
            && self.is_lost(self.index.trees.end(alias))
    }

    /// The ids that mean what an id means because they mean that one, and the id itself.
    pub(crate) fn pointing_at(&self, id: ObjectId, members: &[ObjectId]) -> BTreeSet<ObjectId> {
        let mut pointers: BTreeMap<ObjectId, Vec<ObjectId>> = BTreeMap::new();
        for member in members {
            if let Target::To(target) = self.objects[member].target {
                pointers.entry(target).or_default().push(*member);
            }
        }
        let mut found = BTreeSet::new();
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            if found.insert(id) {
                next.extend(pointers.get(&id).into_iter().flatten());
            }
        }
        found
    }

    fn is_made_anew(&self, id: ObjectId) -> bool {
        match self.objects[&id].producer {
            Producer::Task(maker) => self.entry(maker).is_some_and(|entry| entry.stage == Stage::Queued),
            Producer::Put { .. } => false,
        }
    }

    /// A store is to have an object when it is there, and to know it by that name.
    fn wish(&mut self, end: ObjectId, store: StoreId, name: ObjectId) {
        self.wanted.insert((end, store));
        if name != end {
            self.notices.insert((end, store, name));
        }
    }

    /// Which stores are to have an object, and by which names; of those names that are asked for.
    fn take_wishes(&mut self, end: ObjectId, of: impl Fn(ObjectId) -> bool) -> Vec<(StoreId, ObjectId)> {
        let (first, last) = (ObjectId(0), ObjectId(u64::MAX));
        let notices = self.notices.range((end, StoreId(0), first)..=(end, StoreId(u64::MAX), last));
        let notices: Vec<_> = notices.filter(|(_, _, name)| of(*name)).copied().collect();
        let mut wishes: Vec<(StoreId, ObjectId)> = Vec::new();
        for notice in notices {
            self.notices.remove(&notice);
            wishes.push((notice.1, notice.2));
        }
        if of(end) {
            let wanted = self.wanted.range((end, StoreId(0))..=(end, StoreId(u64::MAX)));
            let wanted: Vec<(ObjectId, StoreId)> = wanted.copied().collect();
            for want in wanted {
                self.wanted.remove(&want);
                wishes.push((want.1, end));
            }
        }
        wishes
    }
}
