//! Leaders come and go; peers are told at least once, and nothing is forgotten.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Code;
use tripod_gateway::Mishap;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_state::ray::view::Availability;

use crate::support::store::Call as StoreCall;
use crate::support::worker::{Call, Worker};
use crate::support::{Cluster, reason, submission, until, with};

const SESSION: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test(start_paused = true)]
async fn a_report_that_comes_while_nobody_leads_is_held_and_applied() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let object = cluster.put(driver).await;
    cluster.inc(&[object]).await;
    store.hold(object);
    cluster.backend.depose();
    let mut scheduler = cluster.scheduler();
    let ready = pb::ObjReadyRequest { objectid: object, objstoreid: store.id };
    let reporting = tokio::spawn(async move { scheduler.obj_ready(ready).await });
    until("the report is held", || cluster.gateway.held_calls() == 1).await;
    cluster.backend.elect();
    reporting.await.unwrap().expect("it is applied");
    assert_eq!(cluster.availability(object), Some(Availability::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_report_that_was_lost_is_recovered_from_what_the_store_holds() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let object = cluster.put(driver).await;
    cluster.inc(&[object]).await;
    store.hold(object);
    cluster.fail_over();
    until("the object is found", || cluster.availability(object) == Some(Availability::Ready)).await;
}

#[tokio::test(start_paused = true)]
async fn a_submission_is_accepted_once_however_often_it_is_sent() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let headers = |seq: &'static str| [(metadata::RAY_SESSION, SESSION), (metadata::RAY_SEQ, seq)];
    let worker = Worker::start(&cluster, &store, &headers("1")).await;
    let send = || {
        let request = with(submission(worker.id, "f", vec![]), &headers("2"));
        let mut scheduler = cluster.scheduler();
        async move { scheduler.submit_task(request).await.expect("answered") }
    };
    // Refused as unknown, the same place in the session can be used again.
    assert!(!send().await.into_inner().function_registered);
    cluster.function(worker.id, "f", 1).await;
    let first = send().await;
    assert!(!first.metadata().contains_key(metadata::RAY_REPLAYED));
    assert!(first.metadata().contains_key(metadata::RAY_LEADER), "who has a session can go there");
    let first = first.into_inner();
    assert_eq!(first.result, [0]);
    cluster.fail_over();
    let again = send().await;
    assert_eq!(again.metadata().get(metadata::RAY_REPLAYED).unwrap(), "1");
    assert_eq!(again.into_inner(), first);
    assert_eq!(cluster.counts().await, [3], "one task");
}

#[tokio::test(start_paused = true)]
async fn a_stamped_call_is_sent_again_by_the_node_itself() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let tries = AtomicUsize::new(0);
    cluster.backend.set_mishaps(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Mishap::UnknownButApplied,
        _ => Mishap::Success,
    });
    let headers = [(metadata::RAY_SESSION, SESSION), (metadata::RAY_SEQ, "1")];
    let put = with(pb::PutObjRequest { workerid: driver, hold: false }, &headers);
    let answer = cluster.scheduler().put_obj(put).await.expect("answered");
    assert_eq!(answer.into_inner().objectid, 0);
    assert_eq!(cluster.counts().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_known_executes_nothing() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let headers = [(metadata::RAY_SESSION, SESSION), (metadata::RAY_SEQ, "7"), (metadata::RAY_ACKED, "6")];
    let put = with(pb::PutObjRequest { workerid: driver, hold: false }, &headers);
    let refused = cluster.scheduler().put_obj(put).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::FailedPrecondition, "session expired"));
    assert_eq!(reason(&refused), "session-expired");
    assert!(cluster.counts().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn orders_wait_for_a_peer_and_keep_their_order() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let mut worker = cluster.worker(&store, &[("f", 0)]).await;
    cluster.settled().await;
    worker.die();
    cluster.export("one").await;
    cluster.export("two").await;
    cluster.submit(driver, "f", vec![]).await;
    worker.listen();
    assert_eq!(worker.calls.next().await, Call::Function("one".to_owned()));
    assert_eq!(worker.calls.next().await, Call::Function("two".to_owned()));
    assert_eq!(worker.executes().await, "f");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_gives_what_the_old_one_did_not_get_through() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let mut worker = cluster.worker(&store, &[]).await;
    cluster.settled().await;
    worker.die();
    for name in ["one", "two", "three"] {
        cluster.export(name).await;
    }
    cluster.fail_over();
    cluster.export("four").await;
    worker.listen();
    for name in ["one", "two", "three", "four"] {
        assert_eq!(worker.calls.next().await, Call::Function(name.to_owned()));
    }
    cluster.settled().await;
}

#[tokio::test(start_paused = true)]
async fn one_slow_peer_does_not_keep_the_others_waiting() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let slow = cluster.worker(&store, &[]).await;
    let fast = cluster.worker(&store, &[]).await;
    slow.calls.answer(|_| Err(tonic::Status::resource_exhausted("the queue is full")));
    for name in ["one", "two"] {
        cluster.export(name).await;
    }
    assert_eq!(fast.calls.next().await, Call::Function("one".to_owned()));
    assert_eq!(fast.calls.next().await, Call::Function("two".to_owned()));
    slow.calls.answer(|_| Ok(()));
    cluster.settled().await;
    let told = slow.calls.take();
    assert_eq!(told.last(), Some(&Call::Function("two".to_owned())));
    assert!(told[..told.len() - 1].iter().all(|call| *call == Call::Function("one".to_owned())), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_2016_is_given_a_doubtful_task_again_only_by_a_new_leader() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = cluster.worker(&store, &[("f", 0)]).await;
    let other = cluster.worker(&store, &[]).await;
    worker.calls.answer(|_| panic!("the process dies on it, as far as its caller can see"));
    cluster.submit(driver, "f", vec![]).await;
    until("the call has failed", || cluster.totals().running == 1).await;
    // Whatever is given to that worker comes after it in its queue.
    until("it was called", || worker.calls.was_asked()).await;
    worker.calls.answer(|_| Ok(()));
    cluster.export("one").await;
    assert_eq!(other.calls.next().await, Call::Function("one".to_owned()));
    assert_eq!(worker.calls.next().await, Call::Function("one".to_owned()), "and not the task");
    cluster.fail_over();
    assert_eq!(worker.executes().await, "f");
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_ours_is_given_a_doubtful_task_again_at_once() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = Worker::start(&cluster, &store, &[(metadata::RAY_EXTENDED, "1")]).await;
    cluster.idle(worker.id).await;
    cluster.function(worker.id, "f", 0).await;
    worker.calls.answer(|_| panic!("the process dies on it, as far as its caller can see"));
    cluster.submit(driver, "f", vec![]).await;
    until("it was called", || worker.calls.was_asked()).await;
    worker.calls.answer(|_| Ok(()));
    let task = worker.task().await;
    assert_eq!((task.operationid, task.attempt), (Some(0), 1), "so that it can tell");
}

#[tokio::test(start_paused = true)]
async fn deliveries_and_deallocations_survive_the_leader() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let driver = cluster.driver(&near).await;
    let [object, gone] = [cluster.put(driver).await, cluster.put(driver).await];
    cluster.inc(&[object, gone]).await;
    cluster.ready(object, &far).await;
    cluster.ready(gone, &far).await;
    for store in [&near, &far] {
        store.calls.answer(|_| Err(tonic::Status::unavailable("not now")));
    }
    cluster.get(driver, object).await;
    cluster.dec(&[gone]).await;
    cluster.fail_over();
    for store in [&near, &far] {
        store.calls.answer(|_| Ok(()));
    }
    cluster.settled().await;
    let told = near.calls.take();
    assert_eq!(told.last(), Some(&StoreCall::Deliver { from: far.address.clone(), object }));
    assert_eq!(far.calls.take().last(), Some(&StoreCall::Deallocate(gone)));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_worker_cannot_be_reached_goes_to_another() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let mut gone = cluster.worker(&store, &[("f", 0)]).await;
    cluster.settled().await;
    gone.die();
    cluster.submit(driver, "f", vec![]).await;
    until("it is given to the one that is gone", || cluster.totals().running == 1).await;
    let other = cluster.worker(&store, &[("f", 0)]).await;
    assert_eq!(other.task().await.operationid, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_a_store_refuses_is_made_from_another_place() {
    let cluster = Cluster::start().await;
    let (near, one, two) = (cluster.store().await, cluster.store().await, cluster.store().await);
    let driver = cluster.driver(&near).await;
    let object = cluster.put(driver).await;
    cluster.inc(&[object]).await;
    cluster.ready(object, &one).await;
    let elsewhere = cluster.driver(&two).await;
    cluster.get(elsewhere, object).await;
    assert_eq!(two.fetches().await, object);
    cluster.ready(object, &two).await;
    let bad = one.address.clone();
    near.calls.answer(move |call| match call {
        StoreCall::Deliver { from, .. } if *from == bad => Err(tonic::Status::not_found("it is not there")),
        _ => Ok(()),
    });
    cluster.get(driver, object).await;
    assert_eq!(near.calls.next().await, StoreCall::Deliver { from: one.address.clone(), object });
    assert_eq!(near.calls.next().await, StoreCall::Deliver { from: two.address.clone(), object });
}
