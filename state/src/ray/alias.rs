//! Ids that mean other objects, and ids that are inside objects.

use std::collections::BTreeSet;

use crate::ray::Ray;
use crate::ray::act::{Act, Owner};
use crate::ray::answer::Answer;
use crate::ray::command::{Origin, Run};
use crate::ray::ids::ObjectId;
use crate::ray::limits::{CONTAINED_MAX, at_most};
use crate::ray::object::{Contained, Producer, Target};
use crate::ray::references::occurrences;
use crate::ray::refusal::Refusal;

impl Act<'_> {
    /// The alias has its place among the pointers from now on, whether the target is there or not.
    pub(crate) fn alias(
        &mut self,
        alias: ObjectId,
        target: ObjectId,
        run: Option<Run>,
    ) -> Result<Answer, Refusal> {
        if alias == target {
            return Err(Refusal::AliasOfItself { alias });
        }
        let pointer = self.ray.object(alias)?.target;
        self.ray.object(target)?;
        self.ray.check_run(run)?;
        let mut anew = false;
        match pointer {
            Target::Unknown => {}
            Target::To(known) if known != target && self.ray.may_point_anew(alias, run) => anew = true,
            Target::To(known) if known == target || self.ray.was_tried_again(alias) => {
                return Ok(Answer::Done);
            }
            Target::To(known) => return Err(Refusal::AliasedAlready { alias, target: known }),
            Target::Canonical if self.ray.was_tried_again(alias) => return Ok(Answer::Done),
            Target::Canonical => return Err(Refusal::AliasOfValue { alias }),
        }
        if self.ray.index.trees.same(alias, target) {
            let members = self.ray.index.trees.members(alias);
            if !anew || self.ray.pointing_at(alias, &members).contains(&target) {
                return Err(Refusal::AliasCycle { alias, target });
            }
        }
        if anew {
            self.detach(alias);
        }
        if self.ray.can_bring(target) {
            let members = self.ray.index.trees.members(alias);
            self.ray.shift(&members, |ray| ray.point(alias, target));
            if self.ray.has_failed(target) {
                for member in &members {
                    let users = self.ray.users_of(*member);
                    self.doomed.extend(users.into_iter().map(|operation| (operation, *member)));
                }
            }
            self.serve(&members);
        } else {
            // Nobody who waits for one of the ids has to be told: so a tree that grows at its end is not gone through
            // each time.
            self.ray.point(alias, target);
        }
        self.pass_wishes_on(alias);
        self.ray.object_mut(alias).creation = false;
        if let Producer::Put { by, .. } = self.ray.objects[&alias].producer {
            self.ray.index.unwritten.remove(&(by, alias));
        }
        self.judge_maker(alias);
        self.drop_one(alias);
        Ok(Answer::Done)
    }

    /// Once for each object; processes that say who they are, with every attempt that writes it. What comes after the
    /// object's end gives up the references at once.
    pub(crate) fn contain(
        &mut self,
        origin: Origin,
        id: ObjectId,
        contained: &[ObjectId],
    ) -> Result<Answer, Refusal> {
        let owner = self.owner(origin)?;
        at_most("ids in an object", contained.len() as u64, CONTAINED_MAX)?;
        let gone = match self.ray.object(id) {
            Ok(object) => {
                if let Some(known) = &object.contained {
                    let same = known.iter().map(|inner| inner.object).eq(contained.iter().copied());
                    let taken = match owner {
                        Owner::Process(_) => self.contain_again(owner, id, contained),
                        Owner::Nobody => Err(Refusal::ContainedAlready { object: id }),
                    };
                    // What is said twice is no mistake, whoever says it.
                    return if same { Ok(Answer::Done) } else { taken };
                }
                false
            }
            Err(Refusal::ObjectDeallocated { .. }) => true,
            Err(refusal) => return Err(refusal),
        };
        for inner in contained {
            self.ray.object(*inner)?;
        }
        let given = self.ray.transferable(owner, contained.iter().copied())?;
        let mut list = Vec::with_capacity(contained.len());
        for (object, held) in contained.iter().copied().zip(given) {
            if held {
                self.ray.disown(owner, object);
            }
            list.push(Contained { object, held });
        }
        if gone {
            for inner in list.into_iter().filter(|inner| inner.held) {
                self.drop_one(inner.object);
            }
        } else {
            self.ray.object_mut(id).contained = Some(list);
        }
        Ok(Answer::Done)
    }
}

impl Act<'_> {
    /// A later attempt wrote the same object anew, and gives references away once more. Calls of a process that says
    /// who it is come once, so it has taken them for that. Which of the two values stays is not known here: each was
    /// told to a store, and the first one that the scheduler hears of counts. So the object holds what is in either.
    fn contain_again(
        &mut self,
        owner: Owner,
        id: ObjectId,
        contained: &[ObjectId],
    ) -> Result<Answer, Refusal> {
        for inner in contained {
            self.ray.object(*inner)?;
        }
        self.ray.transferable(owner, contained.iter().copied())?;
        let known = self.ray.objects[&id].contained.iter().flatten();
        let held: BTreeSet<ObjectId> = known.filter(|inner| inner.held).map(|inner| inner.object).collect();
        let mut fresh = contained.to_vec();
        fresh.sort_unstable();
        fresh.dedup();
        fresh.retain(|inner| !held.contains(inner));
        let known = self.ray.objects[&id].contained.as_ref().map_or(0, Vec::len);
        at_most("ids in an object", (known + fresh.len()) as u64, CONTAINED_MAX)?;
        for object in contained {
            self.ray.disown(owner, *object);
        }
        let added = fresh.iter().map(|object| Contained { object: *object, held: true });
        self.ray.object_mut(id).contained.get_or_insert_default().extend(added);
        let mut spare = occurrences(contained);
        for taken in fresh {
            spare.entry(taken).and_modify(|times| *times -= 1);
        }
        for (object, times) in spare {
            for _ in 0..times {
                self.drop_one(object);
            }
        }
        Ok(Answer::Done)
    }
}

impl Ray {
    /// Refuses what is about an attempt that is not the current one.
    pub(crate) fn check_run(&self, run: Option<Run>) -> Result<(), Refusal> {
        let Some(run) = run else { return Ok(()) };
        match self.entry(run.operation) {
            Some(entry) if entry.is_run(run) => Ok(()),
            Some(_) | None => Err(Refusal::OtherAttempt { operation: run.operation }),
        }
    }

    /// Whether a later attempt of an object's task was begun: the first one's word counts.
    fn was_tried_again(&self, id: ObjectId) -> bool {
        let Some(Producer::Task(operation)) = self.objects.get(&id).map(|object| object.producer) else {
            return false;
        };
        self.entry(operation).is_some_and(|entry| entry.attempt.0 > 1)
    }

    fn point(&mut self, alias: ObjectId, target: ObjectId) {
        self.object_mut(alias).target = Target::To(target);
        let objects = &self.objects;
        let has = |id: ObjectId| objects.get(&id).is_some_and(|object| object.count > 0);
        self.index.trees.merge(alias, target, has);
    }
}
