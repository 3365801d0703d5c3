//! The end of objects to which nothing refers, and of what they contain.

use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::ids::{ObjectId, OperationId};
use crate::ray::limits::GONE_KEPT;
use crate::ray::object::{Producer, Target};
use crate::ray::operation::Kind;

impl Act<'_> {
    /// Ends an object, if nothing refers to any id that means it, and it was made. What it contains loses a
    /// reference each and may follow, depth first like upstream; a stack of our own bears any depth.
    pub(crate) fn release(&mut self, object: ObjectId) {
        let mut drops: Vec<ObjectId> = Vec::new();
        if self.ray.is_loose(object) {
            self.deallocate(object, &mut drops);
        }
        while let Some(contained) = drops.pop() {
            if self.ray.shrink(contained) && self.ray.is_loose(contained) {
                self.deallocate(contained, &mut drops);
            }
        }
    }

    fn deallocate(&mut self, id: ObjectId, drops: &mut Vec<ObjectId>) {
        let members = self.ray.index.trees.members(id);
        let end = self.ray.index.trees.end(id);
        self.doom_users(&members);
        let mut locations = Vec::new();
        self.ray.shift(&members, |ray| locations = std::mem::take(&mut ray.object_mut(end).locations));
        for location in locations {
            self.ray.index.locations.left(location.store, end);
            self.ray.outbox.free(location.store, end);
        }
        self.ray.forget_notices(end);
        self.ray.index.trees.remove(end);
        let mut contained: Vec<ObjectId> = Vec::new();
        let mut made: Vec<(ObjectId, OperationId)> = Vec::new();
        for member in members {
            self.drop_gets(member);
            let object = self.ray.objects.remove(&member).expect("members of trees are referred to");
            let list = object.contained.iter().flatten().filter(|inner| inner.held);
            contained.extend(list.map(|inner| inner.object));
            self.ray.descriptions.remove(&member);
            self.ray.remember_gone(member, object.target);
            if let Producer::Task(maker) = object.producer {
                made.push((member, maker));
            }
        }
        drops.extend(contained.into_iter().rev());
        for (member, maker) in made {
            self.ray.lineage_gone(member, maker);
        }
    }

    /// Tasks that wait for an object which goes, because their clients gave them no reference to it, will never
    /// have it.
    fn doom_users(&mut self, members: &[ObjectId]) {
        if self.ray.index.queue.users.is_empty() {
            return;
        }
        for member in members {
            let users = self.ray.users_of(*member);
            self.doomed.extend(users.into_iter().map(|operation| (operation, *member)));
        }
    }

    /// Nobody is told of an object any more that nothing refers to.
    fn drop_gets(&mut self, object: ObjectId) {
        for operation in self.ray.getters_of(object) {
            let found = self.ray.operations.get(&operation).map(|found| &found.kind);
            if let Some(Kind::Get { worker, .. }) = found {
                let worker = *worker;
                self.ray.end_get(operation, worker, object);
            }
        }
    }
}

impl Ray {
    /// Whether nothing refers to what an id means, and it need not be waited for.
    fn is_loose(&self, id: ObjectId) -> bool {
        let Some(object) = self.objects.get(&id) else { return false };
        let referenced = self.index.trees.referenced(id).unwrap_or(object.count > 0);
        !referenced && self.objects[&self.index.trees.end(id)].target == Target::Canonical
    }

    fn remember_gone(&mut self, id: ObjectId, target: Target) {
        let meant = match target {
            Target::To(other) => other,
            Target::Unknown | Target::Canonical => id,
        };
        self.gone.insert(id, meant);
        while self.gone.len() > GONE_KEPT {
            let oldest = self.gone.get_min().map(|(id, _)| *id);
            oldest.and_then(|oldest| self.gone.remove(&oldest));
        }
    }
}
