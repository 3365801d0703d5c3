//! F8 to F13 and F26: stores that die, and what they held.

use bytes::Bytes;
use tripod_state::ray::ids::{Attempt, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::view::{Availability, Reason, TaskState};
use tripod_state::ray::{Answer, Argument, Decision, Request, Role, Task, TaskOptions, limits};

use crate::rows::peers::StoredObject;
use crate::rows::play::{at_every, everywhere};
use crate::rows::stage::Stage;
use crate::rows::words::{Age, Ends, name};

const FUNCTIONS: [(&str, u64); 2] = [("f", 1), ("parent", 1)];

/// A driver at a store, and two stores with a worker each.
struct Site {
    driver: WorkerId,
    stores: [StoreId; 2],
    workers: [WorkerId; 2],
}

fn site(stage: &mut Stage) -> std::rc::Rc<Site> {
    let near = stage.store(Age::Ours);
    let driver = stage.driver(near);
    let stores = [stage.store(Age::Ours), stage.store(Age::Ours)];
    let workers = stores.map(|store| stage.worker(store, &FUNCTIONS));
    std::rc::Rc::new(Site { driver, stores, workers })
}

#[test]
fn f8_what_has_another_copy_is_fetched_from_there_and_nothing_runs_again() {
    everywhere(site, |stage, site| {
        let result = stage.submit(site.driver, "f", &[])[0];
        stage.runs(site.workers[0], Ends::ReadyFirst);
        let second = stage.driver(site.stores[1]);
        stage.get(second, result);
        stage.fetch();
        let value = stage.reads(second, result);
        // On its way from the store with the lower id when that one dies.
        stage.get(site.driver, result);
        stage.store_dies(site.stores[0]);
        stage.fetch();
        assert_eq!(stage.reads(site.driver, result), value);
        assert!(matches!(value, Some(StoredObject::Value(_))));
        assert_eq!((stage.attempts(), stage.task(0).state), (vec![1], TaskState::Done));
    });
}

/// A chain of tasks of which the driver keeps the last result; all values are at the first store.
fn chain(stage: &mut Stage, depth: usize) -> (std::rc::Rc<Site>, ObjectId) {
    let near = stage.store(Age::Ours);
    let driver = stage.driver(near);
    let stores = [stage.store(Age::Ours), stage.store(Age::Ours)];
    let first = stage.worker(stores[0], &FUNCTIONS);
    let mut last = stage.submit(driver, "f", &[])[0];
    stage.runs(first, Ends::ReadyFirst);
    for _ in 1..depth {
        let next = stage.submit(driver, "f", &[last])[0];
        stage.drop(driver, &[last]);
        stage.runs(first, Ends::ReadyFirst);
        last = next;
    }
    let workers = [first, stage.worker(stores[1], &FUNCTIONS)];
    (std::rc::Rc::new(Site { driver, stores, workers }), last)
}

fn rebuilt(stage: &mut Stage, (site, last): &(std::rc::Rc<Site>, ObjectId)) {
    let depth = stage.attempts().len();
    stage.get(site.driver, *last);
    let value = stage.peers.stores[&site.stores[0]].read(*last);
    stage.store_dies(site.stores[0]);
    for _ in 0..depth {
        stage.runs(site.workers[1], Ends::ReadyFirst);
    }
    stage.fetch();
    assert_eq!(stage.reads(site.driver, *last), value, "an equal value");
    assert!(stage.attempts().iter().all(|attempts| *attempts == 2), "{:?}", stage.attempts());
    assert!(stage.peers.processes[&site.workers[1]].inbox.is_empty(), "each once");
}

#[test]
fn f9_a_chain_whose_only_copies_are_lost_is_made_again_each_task_once() {
    everywhere(|stage| chain(stage, 5), rebuilt);
}

#[test]
fn f9_a_chain_of_a_hundred_too() {
    let prepare = |stage: &mut Stage| {
        (stage.checks, stage.snapshots) = (false, false);
        chain(stage, 100)
    };
    at_every(100, prepare, |stage, cast| {
        rebuilt(stage, cast);
        assert_eq!(stage.machine.check(), Ok(()));
    });
}

#[test]
fn f10_who_waits_for_what_a_driver_put_at_a_store_that_died_is_told_put_object() {
    everywhere(site, |stage, site| {
        let putter = stage.driver(site.stores[0]);
        let object = stage.put(putter, 6);
        let user = stage.submit(site.driver, "f", &[])[0];
        stage.add(site.driver, &[object]);
        stage.get(site.driver, object);
        stage.store_dies(site.stores[0]);
        assert_eq!(stage.reason(object), Some(Reason::PutObject));
        stage.fetch();
        assert_eq!(stage.reads(site.driver, object), Some(StoredObject::Error));
        assert_eq!(stage.reason(user), None);
    });
}

#[test]
fn f11_a_task_whose_store_dies_between_its_report_and_its_result_is_run_again() {
    everywhere(site, |stage, site| {
        let result = stage.submit(site.driver, "f", &[])[0];
        stage.get(site.driver, result);
        let (run, execution) = stage.takes(site.workers[0]);
        stage.unpacks(site.workers[0], &execution);
        stage.reports(site.workers[0], run, true);
        assert_eq!(stage.task(0).state, TaskState::Reported);
        stage.store_dies(site.stores[0]);
        stage.runs(site.workers[1], Ends::ReadyFirst);
        stage.fetch();
        assert!(matches!(stage.reads(site.driver, result), Some(StoredObject::Value(_))));
        assert_eq!((stage.attempts(), stage.task(0).state), (vec![2], TaskState::Done));
        assert_eq!(stage.machine.scheduler().task_info().succeeded, 1, "one task");
    });
}

#[test]
fn f12_of_a_result_that_means_another_the_task_that_makes_that_one_is_run_again() {
    everywhere(site, |stage, site| {
        let result = stage.submit(site.driver, "parent", &[])[0];
        stage.get(site.driver, result);
        let (run, execution) = stage.takes(site.workers[0]);
        let inner = stage.submit(site.workers[0], "f", &[])[0];
        stage.runs(site.workers[1], Ends::ReadyFirst);
        stage.alias(site.workers[0], result, inner, Some(run));
        stage.drop(site.workers[0], &[inner]);
        stage.unpacks(site.workers[0], &execution);
        stage.reports(site.workers[0], run, true);
        let value = stage.peers.stores[&site.stores[1]].read(inner);
        stage.store_dies(site.stores[1]);
        stage.runs(site.workers[0], Ends::ReadyFirst);
        stage.fetch();
        assert_eq!(stage.reads(site.driver, result), value);
        assert_eq!(stage.attempts(), [1, 2], "the parent is not run again");
    });
}

/// What the first attempt returned was lost with its machine. The next one puts another object and returns that.
#[test]
fn f12_a_later_attempt_may_return_another_object_in_place_of_one_that_failed_with_the_first() {
    everywhere(site, |stage, site| {
        let [one, two] = site.workers;
        let result = stage.submit(site.driver, "parent", &[])[0];
        // It waits for something else too, so it is queued when the first object is lost.
        let (gate, _) = stage.put_only(site.driver, None);
        let user = stage.submit(site.driver, "f", &[result, gate])[0];
        stage.get(site.driver, result);
        let (run, _) = stage.takes(one);
        let first = stage.put(one, 1);
        stage.alias(one, result, first, Some(run));
        // It is on its way to the driver's store when the source dies.
        stage.store_dies(site.stores[0]);
        assert_eq!(stage.availability(result), Some(Availability::Pending), "the task runs again");
        let (run, execution) = stage.takes(two);
        let second = stage.put(two, 2);
        stage.alias(two, result, second, Some(run));
        stage.drop(two, &[second]);
        stage.unpacks(two, &execution);
        stage.reports(two, run, true);
        stage.fetch();
        assert_eq!(stage.reads(site.driver, result), Some(StoredObject::Value(2)));
        stage.write(stage.store_of(site.driver), gate, 3, None);
        stage.fetch();
        stage.runs(two, Ends::ReadyFirst);
        assert_eq!(stage.availability(user), Some(Availability::Ready));
        stage.drop(site.driver, &[result, user, gate]);
        assert!(stage.counts().iter().all(|count| *count == -1), "{:?}", stage.counts());
    });
}

/// What the first attempt returned is lost and being made again when the next one returns another object.
#[test]
fn f12_a_later_attempt_may_return_another_object_in_place_of_one_that_is_lost() {
    let prepare = |stage: &mut Stage| {
        let site = site(stage);
        let third = stage.store(Age::Ours);
        (site, stage.worker(third, &FUNCTIONS))
    };
    everywhere(prepare, |stage, (site, three)| {
        let [one, two] = site.workers;
        let result = stage.submit(site.driver, "parent", &[])[0];
        let (run, _) = stage.takes(one);
        let inner = stage.submit(one, "f", &[])[0];
        let maker = stage.busy(&[two, *three]);
        stage.runs(maker, Ends::ReadyFirst);
        stage.alias(one, result, inner, Some(run));
        stage.worker_dies(one);
        let worker = stage.busy(&[two, *three]);
        let (run, execution) = stage.takes(worker);
        assert_eq!(run.attempt, Attempt(2));
        let store = stage.store_of(maker);
        stage.peers.stores.get_mut(&store).unwrap().held.remove(&inner);
        stage.machine.now_ms += 5;
        stage.reconcile(store);
        assert_eq!(stage.availability(result), Some(Availability::Pending), "it is lost");
        stage.get(site.driver, result);
        let second = stage.put(worker, 2);
        stage.alias(worker, result, second, Some(run));
        stage.drop(worker, &[second]);
        stage.fetch();
        assert_eq!(stage.reads(site.driver, result), Some(StoredObject::Value(2)), "without the lost one");
        stage.unpacks(worker, &execution);
        stage.reports(worker, run, true);
        let again = stage.busy(&[two, *three]);
        stage.runs(again, Ends::ReadyFirst);
        stage.drop(site.driver, &[result]);
        assert!(stage.counts().iter().all(|count| *count == -1), "{:?}", stage.counts());
    });
}

#[test]
fn f13_what_was_made_by_a_task_that_is_forgotten_is_told_to_be_so() {
    let prepare = |stage: &mut Stage| {
        (stage.checks, stage.snapshots) = (false, false);
        let near = stage.store(Age::Ours);
        let far = stage.store(Age::Ours);
        let driver = stage.driver(near);
        let worker = stage.worker(far, &FUNCTIONS);
        let value = Bytes::from(vec![0; limits::TASK_BYTES_MAX as usize]);
        let mut results = Vec::new();
        for _ in 0..limits::LINEAGE_BYTES_MAX / limits::TASK_BYTES_MAX + 4 {
            let argument = Argument::Value { bytes: value.clone(), nested: Vec::new() };
            let task = Task { name: name("f"), arguments: vec![argument], results_given: 0 };
            let (options, child, hint) = (TaskOptions::default(), None, None);
            match stage.must(driver, Request::Submit { worker: driver, task, options, child, hint }) {
                Answer::Submitted { results: made } => results.extend(made),
                other => stage.broken(&format!("{other:?}")),
            }
            stage.runs(worker, Ends::ReadyFirst);
            stage.told.clear();
        }
        stage.worker(near, &FUNCTIONS);
        stage.forget_sent();
        (driver, far, results)
    };
    // Nothing of this size is compared after every step.
    at_every(usize::MAX, prepare, |stage, (driver, far, results)| {
        stage.store_dies(*far);
        stage.get(*driver, results[0]);
        stage.fetch();
        assert_eq!(stage.reason(results[0]), Some(Reason::LineageEvicted));
        assert_eq!(stage.reads(*driver, results[0]), Some(StoredObject::Error));
        let last = results[results.len() - 1];
        assert_eq!(stage.availability(last), Some(Availability::Pending), "it is made again");
    });
}

/// A store and a driver of 2016, which say a thing once. What they said to a node that died is found by the next leader.
#[test]
fn f26_the_report_of_a_store_of_2016_that_was_lost_is_found_when_it_is_asked() {
    let prepare = |stage: &mut Stage| {
        let store = stage.store(Age::Of2016);
        let driver = stage.process(Role::Driver, Age::Of2016, store);
        (store, driver, stage.worker_of(Age::Of2016, store, &FUNCTIONS))
    };
    everywhere(prepare, |stage, (store, driver, worker)| {
        let (put, _) = stage.put_only(*driver, None);
        stage.peers.stores.get_mut(store).unwrap().held.insert(put, StoredObject::Value(2));
        stage.machine.now_ms += 5;
        stage.reconcile(*store);
        assert_eq!(stage.availability(put), Some(Availability::Ready));
        let result = stage.submit(*driver, "f", &[put])[0];
        stage.takes(*worker);
        stage.peers.stores.get_mut(store).unwrap().held.insert(result, StoredObject::Value(3));
        stage.kill();
        assert_eq!(stage.availability(result), Some(Availability::Ready));
    });
}

/// A worker of 2016 says once that it is done, and waits. Of a task without results nobody can tell.
#[test]
fn f26_the_report_of_a_worker_of_2016_that_was_lost_is_made_up_for_when_its_results_are_there() {
    let prepare = |stage: &mut Stage| {
        let store = stage.store(Age::Ours);
        let functions = [("f", 2), ("nothing", 0)];
        let old = stage.worker_of(Age::Of2016, store, &functions);
        let other = stage.worker_of(Age::Of2016, store, &[("nothing", 0)]);
        let ours = stage.worker(store, &[("ours", 1)]);
        (store, stage.driver(store), old, other, ours)
    };
    everywhere(prepare, |stage, (store, driver, old, other, ours)| {
        let results = stage.submit(*driver, "f", &[]);
        let nothing = stage.submit(*driver, "nothing", &[]);
        let late = stage.submit(*driver, "ours", &[])[0];
        let (run, _) = stage.takes(*old);
        let (without, _) = stage.takes(*other);
        stage.takes(*ours);
        stage.write(*store, late, 1, None);
        stage.write(*store, results[0], 1, None);
        assert_eq!(stage.machine.scheduler().unreported(), [], "one is missing");
        stage.write(*store, results[1], 2, None);
        assert_eq!(stage.machine.scheduler().unreported(), [run], "neither ours nor one without results");
        stage.decide(&Decision::Unreported { runs: vec![run, without] });
        assert_eq!(stage.task(0).state, TaskState::Done);
        assert_eq!(stage.task(1).state, TaskState::Running);
        stage.reports_of_2016(*other);
        let next = stage.submit(*driver, "f", &[]);
        assert_eq!(stage.takes(*old).0.operation, OperationId(3), "it is idle again");
        assert_eq!((nothing.len(), next.len()), (0, 2));
        assert_eq!(stage.machine.scheduler().task_info().succeeded, 2);
    });
}
