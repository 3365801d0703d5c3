//! New tasks.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::level::Rule;
use crate::ray::Ray;
use crate::ray::act::{Act, Owner};
use crate::ray::answer::Answer;
use crate::ray::command::{Argument, Origin, Task, TaskCall, TaskOptions};
use crate::ray::function::Slot;
use crate::ray::ids::{ObjectId, OperationId, WorkerId};
use crate::ray::limits::{
    ARGUMENTS_MAX, NESTED_MAX, OBJECTS_MAX, ORDERS_MAX, QUEUE_MAX, TASK_BYTES_MAX, at_most,
};
use crate::ray::object::{Object, Producer};
use crate::ray::operation::{Child, Entry, Kind, Operation};
use crate::ray::refusal::Refusal;
use crate::ray::register::{check_name, invalid};
use crate::ray::resources::Needs;
use crate::ray::view::Creator;

/// A task as it is submitted.
pub(crate) struct Submission {
    pub(crate) worker: WorkerId,
    pub(crate) task: Task,
    pub(crate) options: TaskOptions,
    pub(crate) child: Option<TaskCall>,
    pub(crate) hint: Option<WorkerId>,
    pub(crate) needs: Needs,
}

impl Act<'_> {
    pub(crate) fn submit(&mut self, origin: Origin, wanted: Submission) -> Result<Answer, Refusal> {
        let owner = self.owner(origin)?;
        let creator = self.ray.creator(self.ray.living(wanted.worker)?, wanted.child)?;
        if wanted.task.results_given != 0 {
            return Err(invalid("result", "must be empty: the scheduler gives out the ids".to_owned()));
        }
        check_name(&wanted.task.name)?;
        wanted.needs.check()?;
        let digest = wanted.child.map_or(0, |_| digest(&wanted.task));
        if let Some(again) = self.ray.made_before(creator, wanted.child, digest) {
            return self.submit_again(owner, &wanted.task, again);
        }
        let slot = self.ray.functions.slot(&wanted.task.name);
        let function = slot.and_then(|slot| Some((slot, self.ray.functions.get(slot)?)));
        let Some((slot, function)) = function else {
            return Err(Refusal::FunctionUnknown { name: wanted.task.name });
        };
        let results = function.results;
        self.ray.check_task(&wanted.task, results)?;
        self.ray.demands.check_room(&wanted.needs)?;
        if self.follows(Rule::BoundedNests) {
            at_most("tasks within each other", self.ray.depth(creator) + 1, NESTED_MAX)?;
        }
        let given = self.ray.transferable(owner, wanted.task.mentioned().map(|(_, object)| object))?;
        let Submission { worker, task, options, child, hint, needs } = wanted;
        let operation = self.ray.next.operation;
        let results: Vec<ObjectId> =
            (0..results).map(|_| self.ray.new_object(Producer::Task(operation))).collect();
        let mut entry = Entry::new(task, results.clone(), options, worker);
        for ((_, object), given) in entry.task.mentioned().zip(given) {
            if given {
                self.ray.disown(owner, object);
                entry.holds.push(object);
            }
        }
        for result in &results {
            self.ray.own(owner, *result);
            self.ray.grow(*result);
            self.ray.grow(*result);
        }
        entry.holds.extend(&results);
        self.ray.new_operation(Operation { creator, kind: Kind::Task(Box::new(entry)) });
        self.ray.demands.note(operation, &needs);
        self.ray.remember_child(creator, child, Child { operation, digest, object: None });
        self.begin_task(operation, slot, hint);
        Ok(Answer::Submitted { results })
    }

    /// Puts a recorded task into the queue, and gives it to the worker of the hint if that still can be.
    pub(crate) fn begin_task(&mut self, operation: OperationId, slot: Slot, hint: Option<WorkerId>) {
        self.ray.lineage_enter(operation);
        self.ray.enqueue(operation, slot);
        let failed = self.ray.entry(operation).into_iter().flat_map(Entry::awaited);
        let failed = failed.into_iter().find(|argument| self.ray.has_failed(*argument));
        if let Some(argument) = failed {
            self.doomed.push_back((operation, argument));
        } else if let Some(worker) = hint
            // Whoever waits longer is not passed by.
            && self.ray.index.queue.ready.len() == 1
        {
            self.assign_if_due(operation, worker);
        }
    }

    /// A task that runs again submits what it submitted before: nothing runs twice. The references that its caller
    /// gives with the arguments are those which a worker would give up, and it is owed those of the results.
    fn submit_again(&mut self, owner: Owner, task: &Task, again: OperationId) -> Result<Answer, Refusal> {
        let known = |object: &ObjectId| self.ray.objects.contains_key(object);
        let mentioned: Vec<ObjectId> = task.mentioned().map(|(_, object)| object).filter(known).collect();
        let given = self.ray.transferable(owner, mentioned.iter().copied())?;
        let results = self.ray.entry(again).map(|entry| entry.results.clone()).unwrap_or_default();
        for result in &results {
            self.ray.own(owner, *result);
            self.ray.grow(*result);
        }
        for (object, _) in mentioned.into_iter().zip(given).filter(|(_, given)| *given) {
            self.ray.disown(owner, object);
            self.drop_one(object);
        }
        Ok(Answer::Submitted { results })
    }
}

impl Ray {
    pub(crate) fn new_object(&mut self, producer: Producer) -> ObjectId {
        let id = self.next.object;
        self.next.object.0 += 1;
        self.objects.insert(id, Arc::new(Object::new(producer)));
        id
    }

    /// How many tasks that are not over are around what is made there, as far as that matters.
    fn depth(&self, creator: Creator) -> u64 {
        let (mut depth, mut creator) = (0, creator);
        while let Creator::Task(around) = creator
            && depth < NESTED_MAX
            && let Some(found) = self.operations.get(&around)
            && !found.is_finished()
        {
            depth += 1;
            creator = found.creator;
        }
        depth
    }

    /// Whether what an id means is known to be lost for good.
    pub(crate) fn has_failed(&self, id: ObjectId) -> bool {
        self.objects.get(&self.index.trees.end(id)).is_some_and(|object| object.failure.is_some())
    }

    pub(crate) fn check_task(&self, task: &Task, results: u64) -> Result<(), Refusal> {
        at_most("ids and arguments of a task", task.arguments.len() as u64, ARGUMENTS_MAX)?;
        at_most("ids and arguments of a task", task.mentioned().count() as u64, ARGUMENTS_MAX)?;
        let bytes: usize = task.arguments.iter().map(value_bytes).sum();
        at_most("bytes of a task", bytes as u64, TASK_BYTES_MAX)?;
        at_most("queued tasks", self.index.queue.waiting.len() as u64 + 1, QUEUE_MAX)?;
        at_most("objects", self.objects.len() as u64 + results, OBJECTS_MAX)?;
        at_most("orders", self.outbox.len() as u64 + 1, ORDERS_MAX)?;
        for (place, object) in task.mentioned() {
            if object >= self.next.object {
                return Err(Refusal::ArgumentUnknown { place, object });
            }
            if !self.objects.contains_key(&object) {
                return Err(Refusal::ArgumentDeallocated { place, object });
            }
        }
        Ok(())
    }

    /// The task that an earlier attempt of the creator submitted with the same call, if its results are there.
    fn made_before(&self, creator: Creator, call: Option<TaskCall>, digest: u64) -> Option<OperationId> {
        let known = self.child(creator, call)?;
        let entry = self.entry(known.operation)?;
        let intact = |result: &ObjectId| self.objects.contains_key(result) && !self.has_failed(*result);
        let same = known.object.is_none() && known.digest == digest;
        (same && entry.results.iter().all(intact)).then_some(known.operation)
    }
}

fn value_bytes(argument: &Argument) -> usize {
    match argument {
        Argument::Object(_) => 0,
        Argument::Value { bytes, .. } => bytes.len(),
    }
}

/// Equal calls have equal digests, on every replica and build.
fn digest(task: &Task) -> u64 {
    let mut hasher = Xxh3::new();
    task.hash(&mut hasher);
    hasher.finish()
}
