//! References and who owns them. Every count is the sum of what processes, tasks, containers, deliveries, the
//! object's own creation and nobody in particular own.

use std::collections::BTreeMap;

use crate::ray::Ray;
use crate::ray::act::{Act, Owner};
use crate::ray::answer::Answer;
use crate::ray::command::Origin;
use crate::ray::ids::{ObjectId, WorkerId};
use crate::ray::limits::{COUNT_MAX, REFERENCES_MAX, at_most};
use crate::ray::refusal::Refusal;

impl Act<'_> {
    pub(crate) fn add_references(&mut self, origin: Origin, objects: &[ObjectId]) -> Result<Answer, Refusal> {
        let owner = self.owner(origin)?;
        check_list(objects)?;
        for (object, times) in occurrences(objects) {
            at_most("references to an object", self.ray.object(object)?.count + times, COUNT_MAX)?;
        }
        for object in objects {
            self.ray.own(owner, *object);
            self.ray.grow(*object);
        }
        Ok(Answer::Done)
    }

    /// All of them or none.
    pub(crate) fn drop_references(
        &mut self,
        origin: Origin,
        objects: &[ObjectId],
    ) -> Result<Answer, Refusal> {
        let owner = self.owner(origin)?;
        check_list(objects)?;
        for (object, dropped) in occurrences(objects) {
            self.ray.object(object)?;
            let held = self.ray.owned(owner, object);
            if held < dropped {
                return Err(match owner {
                    Owner::Process(process) if held == 0 => Refusal::NotOwned { process, object },
                    Owner::Process(_) | Owner::Nobody => Refusal::TooFewReferences { object, held, dropped },
                });
            }
        }
        for object in objects {
            self.ray.disown(owner, *object);
            self.drop_one(*object);
        }
        Ok(Answer::Done)
    }

    /// Takes away a reference that its owner has given up already, and the object if that was the last one.
    pub(crate) fn drop_one(&mut self, object: ObjectId) {
        if self.ray.shrink(object) {
            self.release(object);
        }
    }

    /// Gives up all references of a process that ended.
    pub(crate) fn reclaim(&mut self, process: WorkerId) {
        let all = (process, ObjectId(0))..=(process, ObjectId(u64::MAX));
        let owned: Vec<(ObjectId, u64)> =
            self.ray.references.range(all).map(|((_, object), count)| (*object, *count)).collect();
        for (object, count) in owned {
            self.ray.references.remove(&(process, object));
            for _ in 1..count {
                self.ray.shrink(object);
            }
            self.drop_one(object);
        }
    }
}

impl Ray {
    /// How many references to an object an owner has.
    pub(crate) fn owned(&self, owner: Owner, object: ObjectId) -> u64 {
        match owner {
            Owner::Process(process) => self.references.get(&(process, object)).copied().unwrap_or(0),
            Owner::Nobody => self.objects.get(&object).map_or(0, |object| object.anonymous),
        }
    }

    /// An owner has one more; the count is somebody else's business.
    pub(crate) fn own(&mut self, owner: Owner, object: ObjectId) {
        match owner {
            Owner::Process(process) => *self.references.entry((process, object)).or_insert(0) += 1,
            Owner::Nobody => self.object_mut(object).anonymous += 1,
        }
    }

    /// An owner has one less.
    pub(crate) fn disown(&mut self, owner: Owner, object: ObjectId) {
        match owner {
            Owner::Process(process) => {
                let count = self.references.get_mut(&(process, object)).expect("it was checked");
                *count -= 1;
                if *count == 0 {
                    self.references.remove(&(process, object));
                }
            }
            Owner::Nobody => self.object_mut(object).anonymous -= 1,
        }
    }

    /// Counts a reference.
    pub(crate) fn grow(&mut self, id: ObjectId) {
        let mut object = self.object_mut(id);
        object.count += 1;
        let first = object.count == 1;
        drop(object);
        if first {
            self.index.trees.note(id, true);
        }
    }

    /// Counts a reference less; whether it was the last one.
    pub(crate) fn shrink(&mut self, id: ObjectId) -> bool {
        let mut object = self.object_mut(id);
        object.count -= 1;
        let last = object.count == 0;
        drop(object);
        if last {
            self.index.trees.note(id, false);
        }
        last
    }

    /// Which of these an owner can give away, each occurrence; an attributed process must own all of them.
    pub(crate) fn transferable(
        &self,
        owner: Owner,
        objects: impl Iterator<Item = ObjectId>,
    ) -> Result<Vec<bool>, Refusal> {
        let mut given: BTreeMap<ObjectId, u64> = BTreeMap::new();
        objects
            .map(|object| {
                let given = given.entry(object).or_default();
                let has = self.owned(owner, object) > *given;
                *given += u64::from(has);
                match owner {
                    Owner::Process(process) if !has => Err(Refusal::NotOwned { process, object }),
                    Owner::Process(_) | Owner::Nobody => Ok(has),
                }
            })
            .collect()
    }
}

pub(crate) fn occurrences(objects: &[ObjectId]) -> BTreeMap<ObjectId, u64> {
    let mut occurrences = BTreeMap::new();
    for object in objects {
        *occurrences.entry(*object).or_default() += 1;
    }
    occurrences
}

fn check_list(objects: &[ObjectId]) -> Result<(), Refusal> {
    at_most("references in a request", objects.len() as u64, REFERENCES_MAX)?;
    if objects.is_empty() {
        let (field, reason) = ("objects".to_owned(), "must not be empty".to_owned());
        return Err(Refusal::Invalid { field, reason });
    }
    Ok(())
}
