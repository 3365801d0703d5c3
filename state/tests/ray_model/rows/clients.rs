//! F1 to F3, F27 and F28: what clients ask, whoever leads when they do.

use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::TaskState;
use tripod_state::ray::{Answer, Refusal, Request, Role, TaskOptions};

use crate::rows::peers::StoredObject;
use crate::rows::play::{everywhere, whatever_differs};
use crate::rows::stage::Stage;
use crate::rows::words::{Age, Ends, submission};

/// A store, a driver and a worker of ours.
fn small(stage: &mut Stage) -> (StoreId, WorkerId, WorkerId) {
    let store = stage.store(Age::Ours);
    let driver = stage.driver(store);
    (store, driver, stage.worker(store, &[("f", 1), ("pair", 2)]))
}

#[test]
fn f1_a_submission_that_is_sent_again_to_the_next_leader_is_one_task_with_the_same_results() {
    everywhere(small, |stage, (_, driver, worker)| {
        assert_eq!(stage.submit(*driver, "pair", &[]), [ObjectId(0), ObjectId(1)]);
        assert_eq!(stage.submit(*driver, "f", &[ObjectId(0)]), [ObjectId(2)]);
        stage.runs(*worker, Ends::ReadyFirst);
        stage.runs(*worker, Ends::ReadyFirst);
        assert_eq!(stage.attempts(), [1, 1], "two tasks, each begun once");
        assert!(matches!(stage.reads(*driver, ObjectId(2)), Some(StoredObject::Value(_))));
    });
}

#[test]
fn f2_a_submission_without_a_session_that_is_sent_again_may_be_two_tasks_and_corrupts_nothing() {
    let prepare = |stage: &mut Stage| {
        let store = stage.store(Age::Of2016);
        let driver = stage.process(Role::Driver, Age::Of2016, store);
        (driver, stage.worker(store, &[("f", 1)]))
    };
    whatever_differs(prepare, |stage, (driver, worker)| {
        // It does not know whether the first one came to anybody, so it asks twice.
        let first = stage.submit(*driver, "f", &[]);
        let second = stage.submit(*driver, "f", &[]);
        assert_ne!(first, second, "two tasks, and no id is given out twice");
        for result in [first[0], second[0]] {
            stage.runs(*worker, Ends::ReadyFirst);
            assert!(matches!(stage.reads(*driver, result), Some(StoredObject::Value(_))));
            stage.drop(*driver, &[result]);
        }
        assert_eq!(stage.counts(), [-1, -1]);
        assert_eq!(stage.attempts(), [1, 1]);
    });
}

/// Every kind of call, in the orders in which reports may come.
#[test]
fn f3_every_call_that_comes_twice_or_late_takes_effect_once() {
    for ends in [Ends::ReadyFirst, Ends::ReportFirst] {
        for alias_first in [true, false] {
            everywhere(small, |stage, (store, driver, worker)| {
                stage.export(*driver, "one");
                stage.export(*driver, "two");
                let put = stage.put(*driver, 7);
                let outer = stage.put(*driver, 8);
                stage.add(*driver, &[put]);
                stage.must(*driver, Request::Contain { object: outer, contained: vec![put] });
                let result = stage.submit(*driver, "f", &[put])[0];
                let (alias, _) = stage.put_only(*driver, None);
                if alias_first {
                    stage.alias(*driver, alias, result, None);
                }
                stage.get(*driver, alias);
                stage.runs(*worker, ends);
                if !alias_first {
                    stage.alias(*driver, alias, result, None);
                }
                stage.fetch();
                assert_eq!(stage.reads(*driver, alias), stage.peers.stores[store].read(result));
                assert_eq!(stage.counts(), [2, 1, 1, 1]);
                stage.drop(*driver, &[outer, put]);
                stage.drop(*driver, &[alias, result]);
                assert_eq!(stage.counts(), [-1, -1, -1, -1]);
                assert!(stage.peers.stores[store].held.is_empty(), "everything was freed");
            });
        }
    }
}

#[test]
fn f27_a_submission_that_was_refused_as_unknown_is_accepted_once_with_the_same_number() {
    let prepare = |stage: &mut Stage| {
        let store = stage.store(Age::Ours);
        (stage.driver(store), stage.worker(store, &[]))
    };
    everywhere(prepare, |stage, (driver, worker)| {
        let submit = submission(*driver, "late", &[], TaskOptions::default(), None);
        let refused = stage.ask(*driver, submit.clone());
        assert!(matches!(refused, Err(Refusal::FunctionUnknown { .. })), "{refused:?}");
        assert!(stage.machine.scheduler().info().graph.is_empty(), "nothing happened");
        stage.function(*worker, "late", 1);
        stage.peers.processes.get_mut(driver).unwrap().session.as_mut().unwrap().last -= 1;
        assert_eq!(stage.ask(*driver, submit), Ok(Answer::Submitted { results: vec![ObjectId(0)] }));
        stage.runs(*worker, Ends::ReadyFirst);
        assert_eq!(stage.attempts(), [1]);
        assert_eq!(stage.task(0).state, TaskState::Done);
    });
}

/// A driver and workers of 2016: nobody says who he is, and reports name no attempt.
#[test]
fn f28_the_counts_of_upstreams_tests_are_the_same_with_another_leader_after_every_call() {
    let prepare = |stage: &mut Stage| {
        let store = stage.store(Age::Of2016);
        let driver = stage.process(Role::Driver, Age::Of2016, store);
        let functions = [("f", 1), ("g", 1), ("h", 1)];
        let workers = [(); 3].map(|()| stage.worker_of(Age::Of2016, store, &functions));
        (driver, workers)
    };
    everywhere(prepare, |stage, (driver, workers)| {
        let called = call(stage, *driver, "h");
        assert_eq!(called, ObjectId(0));
        let (h, runs_h) = unpack(stage, workers);
        let g = call(stage, runs_h, "g");
        let (told_g, runs_g) = unpack(stage, workers);
        assert_eq!(told_g, g);
        let f = call(stage, runs_g, "f");
        let (told_f, runs_f) = unpack(stage, workers);
        assert_eq!(told_f, f);
        for (alias, target, worker) in [(h, g, runs_h), (g, f, runs_g)] {
            stage.alias(worker, alias, target, None);
            // The handle of what is returned, and the one that the task had of its own result.
            stage.drop(worker, &[target, alias]);
            stage.reports_of_2016(worker);
        }
        stage.write(stage.store_of(runs_f), f, 5, None);
        stage.drop(runs_f, &[f]);
        stage.reports_of_2016(runs_f);
        assert_eq!(stage.counts(), [1, 0, 0]);
        stage.drop(*driver, &[h]);
        assert_eq!(stage.counts(), [-1, -1, -1]);
        let one = call(stage, *driver, "f");
        let (told, worker) = unpack(stage, workers);
        assert_eq!(told, one);
        stage.write(stage.store_of(worker), one, 6, None);
        stage.drop(worker, &[one]);
        stage.reports_of_2016(worker);
        assert_eq!(stage.counts(), [-1, -1, -1, 1]);
        stage.drop(*driver, &[one]);
        assert_eq!(stage.counts(), [-1, -1, -1, -1]);
    });
}

/// As upstream's client does with an accepted task: a handle for the result, and the reply's reference dropped.
fn call(stage: &mut Stage, by: WorkerId, function: &str) -> ObjectId {
    let result = stage.submit(by, function, &[])[0];
    stage.add(by, &[result]);
    stage.drop(by, &[result]);
    result
}

/// As upstream's worker does with the task that one of them was given: a handle for the result, and the task's
/// reference dropped.
fn unpack(stage: &mut Stage, workers: &[WorkerId]) -> (ObjectId, WorkerId) {
    let worker = stage.busy(workers);
    let result = stage.takes(worker).1.results[0];
    stage.add(worker, &[result]);
    stage.drop(worker, &[result]);
    (result, worker)
}
