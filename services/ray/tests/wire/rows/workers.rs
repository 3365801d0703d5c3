//! F1, F4 to F7 and F14 to F17: clients and workers.

use std::sync::Arc;

use tonic::Code;
use tripod_gateway::Mishap;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_state::Command;
use tripod_state::ray::ids::WorkerId;
use tripod_state::ray::view::{Availability, Reason};
use tripod_state::ray::{self, Peer};

use super::play::{Play, everywhere};
use crate::support::store::Call as StoreCall;
use crate::support::worker::Call;
use crate::support::{Cluster, HOST, Kind, by_id, reason, submission, until, with};

/// A call that was on its way into the log when the node died: it came into it, or it did not. Either way the client
/// has no answer and asks the next node.
#[tokio::test(start_paused = true)]
async fn f1_a_submission_whose_node_died_before_it_answered_is_one_task() {
    for applied in [true, false] {
        let mut cluster = Cluster::start().await;
        let store = cluster.store().await;
        let worker = cluster.worker(&store, &[("f", 1)]).await;
        let headers = |seq: &'static str| {
            [(metadata::RAY_SESSION, "0123456789abcdef0123456789abcdef"), (metadata::RAY_SEQ, seq)]
        };
        let put = with(pb::PutObjRequest { workerid: worker.id, hold: false }, &headers("1"));
        cluster.scheduler().put_obj(put).await.expect("the session begins");
        let backend = Arc::downgrade(&cluster.backend);
        cluster.backend.set_mishaps(move |envelope| {
            let Command::Ray(ray::Command::Ask { request: ray::Request::Submit { .. }, .. }) =
                envelope.command
            else {
                return Mishap::Success;
            };
            backend.upgrade().expect("it is asked").depose();
            if applied { Mishap::UnknownButApplied } else { Mishap::UnknownAndLost }
        });
        let submit = |cluster: &Cluster| {
            let request = with(submission(worker.id, "f", vec![]), &headers("2"));
            let mut scheduler = cluster.scheduler();
            async move { scheduler.submit_task(request).await }
        };
        let asked = tokio::spawn(submit(&cluster));
        until("nobody knows what became of it", || cluster.gateway.held_calls() == 1).await;
        cluster.kill_leader().await;
        asked.await.expect("it ran").expect_err("its node died");
        let again = submit(&cluster).await.expect("answered");
        assert_eq!(again.metadata().contains_key(metadata::RAY_REPLAYED), applied);
        assert_eq!(again.into_inner().result, [1]);
        let task = worker.task().await;
        assert_eq!((task.operationid, task.attempt), (Some(1), 1));
        assert_eq!(
            cluster.info().await.computation_graph.expect("a graph").operation.len(),
            2,
            "a put, a task"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f4_a_task_whose_worker_died_is_begun_once_more_and_the_late_report_counts_for_nothing() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let mut one = play.cluster.worker(&store, &[("f", 1)]).await;
            let driver = play.cluster.driver(&store).await;
            let result = play.submit(driver, "f", vec![]).await[0];
            assert_eq!(play.task(&one).await.attempt, 1);
            let two = play.cluster.worker(&store, &[("f", 1)]).await;
            play.worker_dies(&mut one).await;
            let previous = pb::ready_for_new_task_request::PreviousTaskInfo {
                task_succeeded: true,
                ..Default::default()
            };
            let report = pb::ReadyForNewTaskRequest { workerid: one.id, previous_task_info: Some(previous) };
            let late = play.cluster.scheduler().ready_for_new_task(report).await.unwrap_err();
            assert_eq!((late.code(), reason(&late)), (Code::FailedPrecondition, "expired"));
            play.step().await;
            let told = play.runs(&two, &store).await;
            assert_eq!((told.operationid, told.attempt), (Some(0), 2));
            assert_eq!(play.cluster.task_info().await.num_succeeded, 1);
            assert_eq!(play.cluster.availability(result), Some(Availability::Ready));
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_task_whose_workers_die_as_often_as_it_may_be_tried_fails_with_its_history_and_who_waits_is_told()
 {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, far) = (play.cluster.store().await, play.cluster.store().await);
            let mut workers =
                [play.cluster.worker(&far, &[("f", 1)]).await, play.cluster.worker(&far, &[("f", 1)]).await];
            let driver = play.cluster.driver(&near).await;
            // The first retry is at once.
            let submit = with(submission(driver, "f", vec![]), &[(metadata::RAY_MAX_RETRIES, "1")]);
            let reply = play.cluster.scheduler().submit_task(submit).await.expect("submitted");
            let result = reply.into_inner().result[0];
            play.step().await;
            play.cluster.inc(&[result]).await;
            let user = play.submit(driver, "f", vec![by_id(result)]).await[0];
            play.get(driver, result).await;
            play.get(driver, user).await;
            for attempt in 1..=2 {
                let busy = play.busy(&workers).await;
                assert_eq!(play.task(&workers[busy]).await.attempt, attempt);
                play.worker_dies(&mut workers[busy]).await;
            }
            let node = play.cluster.address.clone();
            for object in [result, user] {
                play.fetches_failed(&near, object, &node).await;
            }
            let Some(Availability::Failed(failure)) = play.cluster.availability(result) else {
                panic!("the task goes on");
            };
            assert_eq!((failure.reason, failure.history.len()), (Reason::RetriesExhausted, 2));
            let told = play.cluster.task_info().await;
            assert_eq!((told.failed_task.len(), told.num_succeeded), (2, 0));
            play.cluster.settled().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f6_an_exception_is_final_and_is_told_once() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let worker = play.cluster.worker(&store, &[("f", 1)]).await;
            let driver = play.cluster.driver(&store).await;
            let result = play.submit(driver, "f", vec![]).await[0];
            play.get(driver, result).await;
            assert_eq!(play.task(&worker).await.attempt, 1);
            // The function's own error is a value like any other.
            play.ready(result, &store).await;
            play.cluster.failed(worker.id, "on purpose").await;
            play.step().await;
            // Whatever comes next on this worker is not the same task again.
            play.submit(driver, "f", vec![]).await;
            let next = play.runs(&worker, &store).await;
            // The get was an operation too.
            assert_eq!((next.operationid, next.attempt), (Some(2), 1));
            let told = play.cluster.task_info().await;
            let texts: Vec<_> = told.failed_task.iter().map(|task| task.error_message.clone()).collect();
            assert_eq!((texts, told.num_succeeded), (vec!["on purpose".into()], 1));
            assert_eq!(play.cluster.availability(result), Some(Availability::Ready));
            play.cluster.settled().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f7_a_worker_that_was_given_up_while_it_slept_registers_anew_and_its_result_is_not_taken_twice() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, far) = (play.cluster.store().await, play.cluster.store().await);
            let slept = play.cluster.worker(&near, &[("f", 1)]).await;
            let driver = play.cluster.driver(&far).await;
            let result = play.submit(driver, "f", vec![]).await[0];
            play.task(&slept).await;
            let other = play.cluster.worker(&far, &[("f", 1)]).await;
            let id = WorkerId(slept.id);
            play.cluster.expire(vec![Peer::Worker(id)]).await;
            play.step().await;
            assert_eq!(play.runs(&other, &far).await.attempt, 2);
            // It wakes, writes what it has made, and asks for more.
            play.ready(result, &near).await;
            let refused = play.cluster.try_submit(slept.id, "f", vec![]).await.unwrap_err();
            assert_eq!(reason(&refused), "expired");
            let anew = play.cluster.worker(&near, &[("f", 1)]).await;
            assert!(anew.id > other.id);
            play.step().await;
            let freed = StoreCall::Deallocate(result);
            until("its copy is freed", || near.calls.take().contains(&freed)).await;
            play.cluster.settled().await;
            assert_eq!(play.cluster.task_info().await.num_succeeded, 1);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f14_a_task_that_runs_again_gets_the_objects_of_its_first_calls_and_its_child_does_not_run_again() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let mut one = play.cluster.worker(&store, &[("parent", 1)]).await;
            let driver = play.cluster.driver(&store).await;
            play.submit(driver, "parent", vec![]).await;
            play.task(&one).await;
            let two = play.cluster.worker(&store, &[("parent", 1), ("child", 1)]).await;
            let put = nth_put(play, one.id).await;
            assert!(!put.already_present);
            play.cluster.inc(&[put.objectid]).await;
            play.ready(put.objectid, &store).await;
            let child = nth_submit(play, one.id, put.objectid).await;
            play.runs(&two, &store).await;
            play.worker_dies(&mut one).await;
            let again = play.task(&two).await;
            assert_eq!((again.operationid, again.attempt), (Some(0), 2));
            let put_again = nth_put(play, two.id).await;
            assert_eq!((put_again.objectid, put_again.already_present), (put.objectid, true));
            assert_eq!(nth_submit(play, two.id, put.objectid).await, child);
            assert_eq!(play.cluster.totals().queued, 0, "the child is not run again");
            play.cluster.settled().await;
        })
    })
    .await;
}

/// The first call of a running task.
async fn nth_put(play: &mut Play, from: u64) -> pb::PutObjReply {
    let put = with(pb::PutObjRequest { workerid: from, hold: false }, &[(metadata::RAY_CHILD, "0")]);
    let reply = play.cluster.scheduler().put_obj(put).await.expect("put").into_inner();
    play.step().await;
    reply
}

/// The second one.
async fn nth_submit(play: &mut Play, from: u64, argument: u64) -> Vec<u64> {
    play.cluster.inc(&[argument]).await;
    let submit = with(submission(from, "child", vec![by_id(argument)]), &[(metadata::RAY_CHILD, "1")]);
    let reply = play.cluster.scheduler().submit_task(submit).await.expect("submitted").into_inner();
    play.step().await;
    reply.result
}

#[tokio::test(start_paused = true)]
async fn f15_queued_tasks_of_a_driver_that_died_are_cancelled_if_nobody_wants_them() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let worker = play.cluster.worker(&store, &[("f", 1)]).await;
            let session =
                [(metadata::RAY_SESSION, "00000000000000000000000000000001"), (metadata::RAY_SEQ, "1")];
            let request = pb::RegisterWorkerRequest {
                node_ip_address: HOST.to_owned(),
                objstore_address: store.address.clone(),
                is_driver: true,
            };
            let reply = play.cluster.scheduler().register_worker(with(request, &session)).await;
            let driver = reply.expect("registered").into_inner().workerid;
            let named = driver.to_string();
            for _ in 0..3 {
                let submit = with(submission(driver, "f", vec![]), &[(metadata::RAY_WORKER, &named)]);
                play.cluster.scheduler().submit_task(submit).await.expect("submitted");
                play.step().await;
            }
            play.task(&worker).await;
            let other = play.cluster.driver(&store).await;
            play.cluster.inc(&[2]).await;
            let id = WorkerId(driver);
            play.cluster.expire(vec![Peer::Worker(id)]).await;
            play.step().await;
            play.ready(0, &store).await;
            play.done(&worker).await;
            let told = play.runs(&worker, &store).await;
            assert_eq!(told.operationid, Some(2), "the one that somebody else refers to");
            play.get(other, 2).await;
            assert_eq!(play.cluster.totals().queued, 0);
            play.cluster.settled().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f16_exports_deliveries_and_the_end_of_workers_reach_everybody_in_order_whoever_leads() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let stores = [play.cluster.store().await, play.cluster.store().await, play.cluster.store().await];
            let mut workers = Vec::new();
            for store in &stores {
                workers.push(play.cluster.worker(store, &[]).await);
            }
            let driver = play.cluster.driver(&stores[0]).await;
            for name in ["one", "two", "three"] {
                play.cluster.export(name).await;
                play.step().await;
            }
            for worker in &workers {
                for name in ["one", "two", "three"] {
                    assert_eq!(play.imports(worker).await, name);
                }
            }
            let object = play.put(driver, &stores[0]).await;
            for worker in &workers[1..] {
                play.get(worker.id, object).await;
            }
            for store in &stores[1..] {
                play.fetches(store, object, &stores[0].address).await;
            }
            assert!(play.cluster.kill_workers().await);
            play.step().await;
            for worker in &workers {
                until("it is told to end", || worker.calls.take().contains(&Call::Die)).await;
            }
            play.cluster.settled().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f17_healthy_workers_go_on_and_nothing_runs_again() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let worker = play.cluster.worker(&store, &[("f", 1)]).await;
            let driver = play.cluster.driver(&store).await;
            let mut last = play.submit(driver, "f", vec![]).await[0];
            for _ in 0..2 {
                play.cluster.inc(&[last]).await;
                last = play.submit(driver, "f", vec![by_id(last)]).await[0];
            }
            for operation in 0..3 {
                let told = play.runs(&worker, &store).await;
                assert_eq!((told.operationid, told.attempt), (Some(operation), 1));
            }
            assert_eq!(play.cluster.task_info().await.num_succeeded, 3);
            play.cluster.settled().await;
        })
    })
    .await;
}
