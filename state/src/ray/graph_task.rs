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

    /// Whether some living worker has all that is needed.
    pub(crate) fn fits_somewhere(&self, needs: &Needs) -> bool {
        let class = needs.class();
        class.is_default() || self.somebody_holds(&class)
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

    /// Why a result of a watched task cannot be had, though the task itself went well: it was lost before all were there.
    pub(crate) fn lost_result(&self, operation: OperationId) -> Option<Reason> {
        let entry = self.watched.get(&operation).and(self.entry(operation))?;
        let mut results = entry.results.iter().filter_map(|result| self.objects.get(result));
        results.find_map(|result| result.failure.as_ref().map(|failure| failure.reason))
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

#[cfg(test)]
mod tests {
    use crate::ids::TimeMs;
    use crate::ray::command::{Argument, Previous, Registration, Role, Run};
    use crate::ray::ids::FunctionName;
    use crate::ray::resources::Offers;
    use crate::ray::view::Availability;

    use super::*;

    const NOW: TimeMs = TimeMs(5);
    const STORE: StoreId = StoreId(0);
    const WORKER: WorkerId = WorkerId(0);

    fn acting<T>(ray: &mut Ray, work: impl FnOnce(&mut Act<'_>) -> T) -> T {
        let mut act = Act::new(ray, Moment { now: NOW, level: LEVEL });
        let done = work(&mut act);
        act.settle();
        done
    }

    /// Whether the records fit together, once a turn has told its incidents at its end.
    fn checked(ray: &mut Ray) {
        ray.incidents.clear();
        ray.check().unwrap();
    }

    fn name() -> FunctionName {
        FunctionName(Bytes::from_static(b"tripod.mars.chunk"))
    }

    /// With a store, and a worker that takes two tasks.
    fn begun() -> Ray {
        let mut ray = Ray::default();
        acting(&mut ray, |act| {
            act.register_store("10.0.0.1:1".to_owned()).unwrap();
            let registration = Registration {
                host: "10.0.0.1".to_owned(),
                store: String::new(),
                role: Role::Worker,
                attributed: true,
                extended: true,
                slots: 2,
            };
            act.register_worker(registration, Offers::default()).unwrap();
            act.register_function(WORKER, name(), 1).unwrap();
            act.idle(WORKER, None, None).unwrap();
        });
        ray
    }

    fn submit(ray: &mut Ray, inputs: &[ObjectId]) -> (OperationId, ObjectId) {
        let value = Argument::Value { bytes: Bytes::from_static(b"node"), nested: Vec::new() };
        let inputs = inputs.iter().copied().map(Argument::Object);
        let arguments = std::iter::once(value).chain(inputs).collect();
        let task = Task { name: name(), arguments, results_given: 0 };
        let options = TaskOptions { max_retries: Some(0), retry_exceptions: false };
        let wanted = GraphTask { task, options, needs: Needs::default() };
        let (operation, results) = ray.submit_for_graph(NOW, wanted).unwrap();
        let [result] = results[..] else { panic!("one result") };
        (operation, result)
    }

    /// Gives out what can be given out; all of it.
    fn assign(ray: &mut Ray) -> Vec<Run> {
        let planned = ray.plan(NOW, 10);
        acting(ray, |act| act.assign_all(&planned));
        let run = |run: &Run| *run;
        ray.workers.get(&WORKER).unwrap().running.iter().map(run).collect()
    }

    fn ends(ray: &mut Ray, run: Run, succeeded: bool) {
        let previous = Previous { succeeded, error: Bytes::from_static(b"no") };
        acting(ray, |act| act.idle(WORKER, Some(previous), Some(run)).unwrap());
    }

    #[test]
    fn a_task_of_a_graph_keeps_its_inputs_and_its_result_goes_with_the_graphs_reference() {
        let mut ray = begun();
        let (first, input) = submit(&mut ray, &[]);
        let (second, result) = submit(&mut ray, &[input]);
        let run = assign(&mut ray)[0];
        assert_eq!(run.operation, first);
        checked(&mut ray);
        // The second one still needs it.
        ray.drop_for_graph(NOW, &[input]);
        acting(&mut ray, |act| act.ready(input, STORE, Some(run)).unwrap());
        assert_eq!((ray.take_ended(), ray.stores_of(input)), (Vec::new(), vec![STORE]));
        ends(&mut ray, run, true);
        assert_eq!(ray.take_ended(), [(first, Outcome::Succeeded)]);
        let run = assign(&mut ray)[0];
        assert_eq!(run.operation, second);
        acting(&mut ray, |act| act.ready(result, STORE, Some(run)).unwrap());
        ends(&mut ray, run, true);
        assert_eq!(ray.take_ended(), [(second, Outcome::Succeeded)]);
        checked(&mut ray);
        // The worker gives up what it was given with its tasks, as workers do.
        let owned: Vec<ObjectId> = ray.references.keys().map(|(_, object)| *object).collect();
        acting(&mut ray, |act| {
            for object in owned {
                while act.ray.owned(Owner::Process(WORKER), object) > 0 {
                    act.ray.disown(Owner::Process(WORKER), object);
                    act.drop_one(object);
                }
            }
        });
        assert_eq!(ray.availability(input), Some(Availability::Deallocated));
        ray.hold_for_graph(result);
        ray.drop_for_graph(NOW, &[result, result]);
        assert_eq!(ray.availability(result), Some(Availability::Deallocated));
        ray.drop_for_graph(NOW, &[result]);
        checked(&mut ray);
    }

    #[test]
    fn whoever_watches_is_told_of_every_end_once() {
        let mut ray = begun();
        let (raises, raised) = submit(&mut ray, &[]);
        let (follows, _) = submit(&mut ray, &[raised]);
        let run = assign(&mut ray)[0];
        let failed = |outcome: &Outcome| match outcome {
            Outcome::Failed { reason, error, worker, attempt } => {
                (reason.clone(), String::from_utf8_lossy(error).into_owned(), *worker, attempt.0)
            }
            other => panic!("{other:?}"),
        };
        ends(&mut ray, run, false);
        let ended = ray.take_ended();
        assert_eq!(ended[0].0, raises);
        assert_eq!(failed(&ended[0].1), ("EXCEPTION".to_owned(), "no".to_owned(), Some(WORKER), 1));
        // It waits for what its store has in the place of the result.
        assert_eq!(ended.len(), 1);
        ray.cancel_for_graph(NOW, follows, DurationMs(1));
        ray.cancel_for_graph(NOW, follows, DurationMs(1));
        assert_eq!(ray.take_ended(), [(follows, Outcome::Cancelled)]);
        let (dies, lost) = submit(&mut ray, &[]);
        let (needs, _) = submit(&mut ray, &[lost]);
        assign(&mut ray);
        acting(&mut ray, |act| act.end_worker(WORKER, "it left"));
        let ended = ray.take_ended();
        assert_eq!(ended.iter().map(|(operation, _)| *operation).collect::<Vec<_>>(), [dies, needs]);
        let (reason, error, worker, attempt) = failed(&ended[0].1);
        assert_eq!((reason.as_str(), worker, attempt), ("WORKER_DIED", Some(WORKER), 1));
        assert!(error.contains("it left"), "{error}");
        assert_eq!(failed(&ended[1].1).0, "DEPENDENCY_FAILED");
        // Its input has failed: that is told at once.
        let (late, _) = submit(&mut ray, &[lost]);
        let ended = ray.take_ended();
        assert_eq!((ended[0].0, failed(&ended[0].1).0.as_str()), (late, "DEPENDENCY_FAILED"));
        assert_eq!(ray.take_ended(), []);
        checked(&mut ray);
    }

    #[test]
    fn a_task_that_went_well_and_whose_result_was_lost_meanwhile_has_not() {
        let mut ray = begun();
        let (operation, _) = submit(&mut ray, &[]);
        let run = assign(&mut ray)[0];
        ends(&mut ray, run, true);
        assert_eq!(ray.take_ended(), [], "its result is still to come");
        acting(&mut ray, |act| act.end_store(STORE, "it left"));
        let ended = ray.take_ended();
        let [(ended, Outcome::Failed { reason, worker, .. })] = &ended[..] else { panic!("{ended:?}") };
        assert_eq!((*ended, reason.as_str(), *worker), (operation, "RECONSTRUCTION_DISABLED", Some(WORKER)));
        checked(&mut ray);
    }

    #[test]
    fn a_refused_task_of_a_graph_leaves_nothing() {
        let mut ray = begun();
        let before = ray.clone();
        let task =
            Task { name: FunctionName(Bytes::from_static(b"f")), arguments: Vec::new(), results_given: 0 };
        let wanted = GraphTask { task, options: TaskOptions::default(), needs: Needs::default() };
        let refused = ray.submit_for_graph(NOW, wanted);
        assert!(matches!(refused, Err(Refusal::FunctionUnknown { .. })), "{refused:?}");
        assert!(ray == before);
        assert!(ray.room_for_graph(1).is_ok() && ray.room_for_graph(QUEUE_MAX + 1).is_err());
        let gpu = Needs { cpus_milli: 1_001, ..Needs::default() };
        assert!(ray.fits_somewhere(&Needs::default()) && !ray.fits_somewhere(&gpu));
    }
}
