//! F4 to F7 and F14 to F17: workers and drivers that die, or do not.

use tripod_state::ray::ids::{Attempt, ExportId, ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::{Availability, Reason, TaskState, WorkerLife};
use tripod_state::ray::{Answer, Decision, Peer, Request, TaskOptions};

use crate::rows::peers::StoredObject;
use crate::rows::play::everywhere;
use crate::rows::stage::Stage;
use crate::rows::words::{Age, Ends, report};

/// A driver, and some workers that live at a store of their own.
fn with_workers<const N: usize>(stage: &mut Stage) -> (StoreId, WorkerId, [WorkerId; N]) {
    let near = stage.store(Age::Ours);
    let driver = stage.driver(near);
    let far = stage.store(Age::Ours);
    (far, driver, [(); N].map(|()| stage.worker(far, &[("f", 1), ("parent", 1)])))
}

#[test]
fn f4_a_task_whose_worker_died_is_begun_once_more_and_the_late_report_counts_for_nothing() {
    everywhere(with_workers::<2>, |stage, (_, driver, [one, two])| {
        let result = stage.submit(*driver, "f", &[])[0];
        let (first, _) = stage.takes(*one);
        stage.worker_dies(*one);
        let late = stage.late_call(report(*one, first, true));
        assert!(Stage::is_fenced(&late, *one), "{late:?}");
        assert_eq!(stage.machine.scheduler().task_info().succeeded, 0);
        let second = stage.runs(*two, Ends::ReadyFirst);
        assert_eq!((second.operation, second.attempt), (first.operation, Attempt(2)));
        stage.get(*driver, result);
        stage.fetch();
        assert!(matches!(stage.reads(*driver, result), Some(StoredObject::Value(_))));
        assert_eq!(stage.machine.scheduler().task_info().succeeded, 1);
        assert_eq!(stage.counts(), [1]);
    });
}

#[test]
fn f5_a_task_whose_workers_die_as_often_as_it_may_be_tried_fails_with_its_history_and_whoever_waits_is_told()
{
    everywhere(with_workers::<4>, |stage, (_, driver, workers)| {
        let options = TaskOptions { max_retries: Some(2), retry_exceptions: false };
        let result = stage.submit_as(*driver, "f", &[], options, None)[0];
        let user = stage.submit(*driver, "f", &[result])[0];
        stage.get(*driver, result);
        stage.get(*driver, user);
        for attempt in 1..=3 {
            let busy = stage.busy(workers);
            assert_eq!(stage.takes(busy).0.attempt, Attempt(attempt));
            stage.worker_dies(busy);
            stage.wait_until_due();
        }
        let Some(Availability::Failed(failure)) = stage.availability(result) else {
            stage.broken("the task goes on")
        };
        assert_eq!((failure.reason, failure.history.len()), (Reason::RetriesExhausted, 3));
        assert_eq!(stage.reason(user), Some(Reason::DependencyFailed(result)));
        stage.fetch();
        assert_eq!(stage.reads(*driver, result), Some(StoredObject::Error));
        assert_eq!(stage.reads(*driver, user), Some(StoredObject::Error));
        assert_eq!(stage.attempts(), [3, 0]);
        let failed = stage.machine.scheduler().task_info().failed;
        let told = failed.iter().any(|task| task.error.starts_with(b"its argument, object 0"));
        assert!(told, "{failed:?}");
    });
}

#[test]
fn f6_an_exception_is_final_and_is_told_once() {
    everywhere(with_workers::<2>, |stage, (far, driver, [one, _])| {
        let result = stage.submit(*driver, "f", &[])[0];
        stage.get(*driver, result);
        let (run, execution) = stage.takes(*one);
        // The function's own error is a value like any other.
        stage.write(*far, result, 13, Some(run));
        stage.unpacks(*one, &execution);
        stage.reports(*one, run, false);
        stage.fetch();
        assert_eq!(stage.reads(*driver, result), Some(StoredObject::Value(13)));
        assert_eq!((stage.attempts(), stage.task(0).state), (vec![1], TaskState::Failed));
        let told = stage.machine.scheduler().task_info();
        assert_eq!((told.failed.len(), told.running.len(), told.succeeded), (1, 0, 0));
    });
}

/// What the paused worker has made comes before or after that of the next attempt.
#[test]
fn f7_a_worker_that_was_given_up_while_it_slept_is_fenced_and_its_results_are_not_taken_twice() {
    for wakes_first in [true, false] {
        let prepare = |stage: &mut Stage| {
            let (_, driver, [one]) = with_workers::<1>(stage);
            let other = stage.store(Age::Ours);
            (driver, one, stage.worker(other, &[("f", 1)]))
        };
        everywhere(prepare, |stage, (driver, one, two)| {
            let result = stage.submit(*driver, "f", &[])[0];
            let (first, execution) = stage.takes(*one);
            stage.decide(&Decision::Expire { peers: vec![Peer::Worker(*one)] });
            let wake = |stage: &mut Stage| {
                stage.stores_results(*one, first, &execution);
                let said = stage.ask(*one, report(*one, first, true));
                assert!(Stage::is_fenced(&said, *one), "{said:?}");
            };
            if wakes_first {
                wake(stage);
            }
            assert_eq!(stage.runs(*two, Ends::ReadyFirst).attempt, Attempt(2));
            if !wakes_first {
                wake(stage);
            }
            let store = stage.store_of(*one);
            stage.peers.processes.remove(one);
            let anew = stage.worker(store, &[("f", 1)]);
            assert!(anew > *two, "another id is another incarnation");
            let copies = |stage: &Stage| {
                let shelves = stage.peers.stores.values();
                shelves.filter(|shelf| shelf.held.contains_key(&result)).count()
            };
            assert_eq!(copies(stage), 1, "the first value counts, and another one is freed");
            assert_eq!(stage.machine.scheduler().task_info().succeeded, 1);
            stage.get(*driver, result);
            stage.fetch();
            assert!(matches!(stage.reads(*driver, result), Some(StoredObject::Value(_))));
        });
    }
}

/// The parent's worker dies after its child is done. What the parent put and what the child made keep their ids.
#[test]
fn f14_a_task_that_runs_again_gets_the_objects_of_its_first_calls_and_its_child_does_not_run_again() {
    for put_is_gone in [false, true] {
        everywhere(with_workers::<2>, |stage, (far, driver, [one, two])| {
            let result = stage.submit(*driver, "parent", &[])[0];
            let (first, _) = stage.takes(*one);
            let (put, present) = stage.put_only(*one, Some(0));
            assert!(!present);
            stage.write(*far, put, 5, None);
            let options = TaskOptions::default();
            let child = stage.submit_as(*one, "f", &[put], options, Some(1))[0];
            if put_is_gone {
                stage.drop(*one, &[put]);
            }
            stage.runs(*two, Ends::ReadyFirst);
            assert_eq!(stage.availability(put) == Some(Availability::Deallocated), put_is_gone);
            stage.worker_dies(*one);

            let (second, execution) = stage.takes(*two);
            assert_eq!((second.operation, second.attempt), (first.operation, Attempt(2)));
            let (again, present) = stage.put_only(*two, Some(0));
            assert_eq!((again, present), (put, !put_is_gone), "the same id");
            if !present {
                stage.write(*far, put, 5, Some(second));
            }
            assert_eq!(stage.submit_as(*two, "f", &[put], options, Some(1)), [child], "the same call");
            stage.alias(*two, result, child, Some(second));
            stage.drop(*two, &[put, child]);
            stage.unpacks(*two, &execution);
            stage.reports(*two, second, true);
            assert_eq!(stage.attempts(), [2, 1], "the child ran once");
            stage.get(*driver, result);
            stage.fetch();
            assert!(matches!(stage.reads(*driver, result), Some(StoredObject::Value(_))));
            stage.drop(*driver, &[result]);
            assert!(stage.counts().iter().all(|count| *count == -1), "{:?}", stage.counts());
        });
    }
}

/// The worker dies between the put and its value: the next attempt writes it, and who waits for it gets it.
#[test]
fn f14_what_a_task_put_and_did_not_write_is_written_by_its_next_attempt() {
    everywhere(with_workers::<2>, |stage, (far, driver, [one, two])| {
        let result = stage.submit(*driver, "parent", &[])[0];
        let (first, _) = stage.takes(*one);
        let (put, _) = stage.put_only(*one, Some(0));
        stage.alias(*one, result, put, Some(first));
        stage.get(*driver, result);
        stage.worker_dies(*one);
        assert_eq!(stage.availability(result), Some(Availability::Pending), "it is still to come");
        let (second, execution) = stage.takes(*two);
        assert_eq!(stage.put_only(*two, Some(0)), (put, false));
        stage.write(*far, put, 9, Some(second));
        stage.alias(*two, result, put, Some(second));
        stage.drop(*two, &[put]);
        stage.unpacks(*two, &execution);
        stage.reports(*two, second, true);
        stage.fetch();
        assert_eq!(stage.reads(*driver, result), Some(StoredObject::Value(9)));
        assert_eq!(stage.attempts(), [2]);
    });
}

/// The next attempt takes another way, and does not put it again.
#[test]
fn f14_what_no_attempt_writes_any_more_fails_when_the_task_ends() {
    everywhere(with_workers::<2>, |stage, (_, driver, [one, two])| {
        stage.submit(*driver, "parent", &[]);
        stage.takes(*one);
        let (put, _) = stage.put_only(*one, Some(0));
        stage.add(*driver, &[put]);
        stage.get(*driver, put);
        stage.worker_dies(*one);
        assert_eq!(stage.availability(put), Some(Availability::Pending), "it may still come");
        stage.runs(*two, Ends::ReadyFirst);
        assert_eq!(stage.reason(put), Some(Reason::PutObject));
        stage.fetch();
        assert_eq!(stage.reads(*driver, put), Some(StoredObject::Error));
    });
}

#[test]
fn f15_what_a_driver_referred_to_goes_with_it_and_queued_tasks_that_nobody_wants_are_cancelled() {
    let prepare = |stage: &mut Stage| {
        let (far, driver, [worker]) = with_workers::<1>(stage);
        (driver, stage.driver(far), worker)
    };
    everywhere(prepare, |stage, (driver, other, worker)| {
        let put = stage.put(*driver, 3);
        let runs = stage.submit(*driver, "f", &[put])[0];
        let unwanted = stage.submit(*driver, "f", &[runs])[0];
        let wanted = stage.submit(*driver, "f", &[put])[0];
        stage.add(*other, &[wanted]);
        stage.fetch();
        stage.worker_dies(*driver);
        let states = [0, 1, 2].map(|task| stage.task([1, 2, 3][task]).state);
        assert_eq!(states, [TaskState::Running, TaskState::Cancelled, TaskState::Queued]);
        stage.runs(*worker, Ends::ReadyFirst);
        stage.runs(*worker, Ends::ReadyFirst);
        assert!(matches!(stage.reads(*other, wanted), Some(StoredObject::Value(_))));
        assert_eq!(stage.reason(unwanted), None);
        assert_eq!(stage.counts(), [-1, -1, -1, 1], "put, running, cancelled, wanted by the other one");
        stage.drop(*other, &[wanted]);
        assert_eq!(stage.counts(), [-1; 4]);
    });
}

#[test]
fn f16_exports_deliveries_and_the_end_of_workers_reach_everybody_in_order_whoever_leads() {
    let prepare = |stage: &mut Stage| {
        let (_, driver, workers) = with_workers::<3>(stage);
        let stores = [(); 3].map(|()| stage.store(Age::Ours));
        let getters = stores.map(|store| stage.driver(store));
        (driver, workers, getters)
    };
    everywhere(prepare, |stage, (driver, workers, getters)| {
        for body in ["one", "two", "three"] {
            stage.export(*driver, body);
        }
        for worker in workers {
            let imports = &stage.peers.processes[worker].imports;
            assert_eq!(imports[..], [ExportId(0), ExportId(1), ExportId(2)], "worker {worker}");
        }
        let object = stage.put(*driver, 4);
        for getter in getters {
            stage.get(*getter, object);
        }
        stage.fetch();
        for getter in getters {
            assert_eq!(stage.reads(*getter, object), Some(StoredObject::Value(4)));
        }
        assert_eq!(stage.must(*driver, Request::KillWorkers), Answer::Killed(true));
        for worker in workers {
            assert!(stage.peers.processes[worker].told_to_die, "worker {worker}");
        }
        assert_eq!(stage.machine.scheduler().totals().orders, 0);
    });
}

#[test]
fn f17_healthy_workers_go_on_and_nothing_runs_again() {
    everywhere(with_workers::<2>, |stage, (_, driver, workers)| {
        let mut last = stage.submit(*driver, "f", &[])[0];
        for _ in 0..3 {
            last = stage.submit(*driver, "f", &[last])[0];
        }
        let others = [(); 2].map(|()| stage.submit(*driver, "f", &[])[0]);
        loop {
            let busy = workers.iter().find(|worker| !stage.peers.processes[worker].inbox.is_empty());
            let Some(busy) = busy.copied() else { break };
            stage.fetch();
            stage.runs(busy, Ends::ReadyFirst);
        }
        for object in [last, others[0], others[1]] {
            stage.get(*driver, object);
            stage.fetch();
            assert!(matches!(stage.reads(*driver, object), Some(StoredObject::Value(_))));
        }
        assert_eq!(stage.attempts(), [1; 6]);
        let all = stage.machine.scheduler().workers();
        assert!(all.iter().all(|worker| !matches!(worker.life, WorkerLife::Dead(_))), "{all:?}");
        assert_eq!(last, ObjectId(3));
    });
}
