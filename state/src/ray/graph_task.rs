//! Tasks that the state itself submits, for graphs: they have no process that submits them, and whoever watches them
//! is told of their ends within the same command.

use bytes::Bytes;

use crate::ids::{DurationMs, FeatureLevel, TimeMs};
use crate::ray::Ray;
use crate::ray::act::{Act, Owner};
use crate::ray::apply::Moment;
use crate::ray::command::{Task, TaskOptions};
use crate::ray::describe::Description;
use crate::ray::ids::{Attempt, ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::limits::{GRACE_MS_MAX, OBJECTS_MAX, ORDERS_MAX, QUEUE_MAX, at_most};
use crate::ray::object::Producer;
use crate::ray::operation::{Entry, Kind, Operation};
use crate::ray::refusal::Refusal;
use crate::ray::register::{check_name, invalid};
use crate::ray::resources::Needs;
use crate::ray::view::{Creator, Reason};

/// The level with which graphs came: what commands about them mean is what it means there.
const LEVEL: FeatureLevel = FeatureLevel(10);
/// In the place of the process that submits. Ids are counted up from 0, and this one is never reached.
const NOBODY: WorkerId = WorkerId(u64::MAX);

/// A task of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GraphTask {
    pub(crate) task: Task,
    pub(crate) options: TaskOptions,
    pub(crate) needs: Needs,
}

/// How a watched task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed {
        /// A word: `EXCEPTION`, `WORKER_DIED`, `DEPENDENCY_FAILED`, `NO_SUCH_FUNCTION` and so on.
        reason: String,
        /// Any bytes, for people.
        error: Bytes,
        /// Who had the last attempt, if anybody had one.
        worker: Option<WorkerId>,
        attempt: Attempt,
    },
    Cancelled,
}

/// The functions that graphs are built on.
#[allow(dead_code, reason = "graphs are another domain, and it decides which of these it needs")]
impl Ray {
    /// Whether so many tasks can be submitted, each with one result.
    ///
    /// # Errors
    /// [`Refusal::Full`].
    pub(crate) fn room_for_graph(&self, tasks: u64) -> Result<(), Refusal> {
        let with = |known: usize| (known as u64).saturating_add(tasks);
        at_most("queued tasks", with(self.index.queue.waiting.len()), QUEUE_MAX)?;
        at_most("objects", with(self.objects.len()), OBJECTS_MAX)?;
        at_most("orders", with(self.outbox.len()), ORDERS_MAX)
    }

    /// Submits a task that nobody submits. Each result has one reference of nobody, which
    /// [`Ray::drop_for_graph`] gives up; the arguments get references of the task's own. One whose argument cannot be
    /// had fails at once, and [`Ray::take_ended`] says so.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed then.
    pub(crate) fn submit_for_graph(
        &mut self,
        now: TimeMs,
        wanted: GraphTask,
    ) -> Result<(OperationId, Vec<ObjectId>), Refusal> {
        let GraphTask { task, options, needs } = wanted;
        if task.results_given != 0 {
            return Err(invalid("result", "must be empty: the scheduler gives out the ids".to_owned()));
        }
        check_name(&task.name)?;
        needs.check()?;
        self.demands.check_room(&needs)?;
        let slot = self.functions.slot(&task.name);
        let function = slot.and_then(|slot| Some((slot, self.functions.get(slot)?)));
        let Some((slot, function)) = function else {
            return Err(Refusal::FunctionUnknown { name: task.name });
        };
        let results = function.results;
        self.check_task(&task, results)?;
        let operation = self.next.operation;
        let results: Vec<ObjectId> =
            (0..results).map(|_| self.new_object(Producer::Task(operation))).collect();
        let mut entry = Entry::new(task, results.clone(), options, NOBODY);
        let arguments = entry.task.mentioned().map(|(_, object)| object);
        let holds: Vec<ObjectId> = arguments.chain(results.iter().copied()).collect();
        for object in &holds {
            self.grow(*object);
        }
        entry.holds = holds;
        for result in &results {
            self.own(Owner::Nobody, *result);
            self.grow(*result);
        }
        self.new_operation(Operation { creator: Creator::Root, kind: Kind::Task(Box::new(entry)) });
        self.demands.note(operation, &needs);
        self.watched.insert(operation, None);
        self.acting(now, |act| act.begin_task(operation, slot, None));
        Ok((operation, results))
    }

    /// As a client cancels a task; what is over stays as it is.
    pub(crate) fn cancel_for_graph(&mut self, now: TimeMs, operation: OperationId, grace: DurationMs) {
        let grace = DurationMs(grace.0.min(GRACE_MS_MAX));
        self.acting(now, |act| {
            act.cancel_operation(operation, grace);
        });
    }

    /// One more reference of nobody to an object, if it is there.
    pub(crate) fn hold_for_graph(&mut self, object: ObjectId) {
        if self.objects.contains_key(&object) {
            self.own(Owner::Nobody, object);
            self.grow(object);
        }
    }

    /// One reference of nobody less to each of these, in their order; to those that have some.
    pub(crate) fn drop_for_graph(&mut self, now: TimeMs, objects: &[ObjectId]) {
        self.acting(now, |act| {
            for object in objects {
                if act.ray.owned(Owner::Nobody, *object) > 0 {
                    act.ray.disown(Owner::Nobody, *object);
                    act.drop_one(*object);
                }
            }
        });
    }

    /// The watched tasks that have ended since this was called last, in ascending order. Whoever watches must ask at the
    /// end of every command: what has ended is in no snapshot.
    pub(crate) fn take_ended(&mut self) -> Vec<(OperationId, Outcome)> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|(operation, _)| *operation);
        ended
    }

    pub(crate) fn described(&self, object: ObjectId) -> Option<&Description> {
        self.descriptions.get(&object).or_else(|| self.descriptions.get(&self.index.trees.end(object)))
    }

    /// Where copies of an object are, in ascending order; none of one that failed.
    pub(crate) fn stores_of(&self, object: ObjectId) -> Vec<StoreId> {
        let end = self.objects.get(&self.index.trees.end(object));
        let end = end.filter(|object| object.failure.is_none());
        end.into_iter().flat_map(|object| &object.locations).map(|location| location.store).collect()
    }

    /// Where a store that lives is.
    pub(crate) fn store_address(&self, store: StoreId) -> Option<&str> {
        let store = self.stores.get(&store).filter(|store| store.is_alive())?;
        Some(&store.address)
    }

    /// Does something as a command would, with all that follows from it.
    fn acting(&mut self, now: TimeMs, work: impl FnOnce(&mut Act<'_>)) {
        let mut act = Act::new(self, Moment { now, level: LEVEL });
        work(&mut act);
        act.settle();
    }
}

impl Ray {
    /// Who has the current attempt of a watched task.
    pub(crate) fn note_worker(&mut self, operation: OperationId, worker: WorkerId) {
        if self.watched.contains_key(&operation) {
            self.watched.insert(operation, Some(worker));
        }
    }

    /// A task has ended: it is watched no more, and whoever watched it is told.
    pub(crate) fn end_watch(&mut self, operation: OperationId, end: End<'_>) {
        let Some(worker) = self.watched.remove(&operation) else { return };
        let attempt = self.entry(operation).map_or(Attempt(0), |entry| entry.attempt);
        let failed = |reason: &str, error: Bytes| {
            let reason = reason.to_owned();
            Outcome::Failed { reason, error, worker, attempt }
        };
        let outcome = match end {
            End::Done => Outcome::Succeeded,
            End::Raised(error) => failed("EXCEPTION", error.clone()),
            End::GivenUp(Reason::Cancelled) => Outcome::Cancelled,
            End::GivenUp(reason) => failed(word(reason), self.last_words(operation)),
        };
        self.ended.push((operation, outcome));
    }

    /// How the last attempt ended, or else why there was none.
    fn last_words(&self, operation: OperationId) -> Bytes {
        let Some(entry) = self.entry(operation) else { return Bytes::new() };
        match entry.endings().pop() {
            Some(last) => Bytes::from(format!("{}: {last}", String::from_utf8_lossy(&entry.error))),
            None => entry.error.clone(),
        }
    }
}

/// How a task ended, as the scheduler sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End<'a> {
    Done,
    /// Its function failed, with this.
    Raised(&'a Bytes),
    GivenUp(Reason),
}

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::PutObject => "PUT_OBJECT",
        // Nothing else than deaths exhausts what is tried again without a report.
        Reason::RetriesExhausted => "WORKER_DIED",
        Reason::LineageEvicted => "LINEAGE_EVICTED",
        Reason::NoSuchFunction => "NO_SUCH_FUNCTION",
        Reason::DependencyFailed(_) => "DEPENDENCY_FAILED",
        Reason::ReconstructionDisabled => "RECONSTRUCTION_DISABLED",
        Reason::Cancelled => "CANCELLED",
    }
}
