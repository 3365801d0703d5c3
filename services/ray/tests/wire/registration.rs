//! Who registers, and what is answered to calls that cannot be executed.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;
use tripod_proto::metadata;
use tripod_proto::ray as pb;

use crate::support::{Cluster, HOST, reason, submission, until, with};

#[tokio::test(start_paused = true)]
async fn calls_that_upstream_never_served_are_unimplemented() {
    let cluster = Cluster::start().await;
    let mut scheduler = cluster.scheduler();
    let change = pb::ChangeCountRequest { objectid: 0 };
    assert_eq!(scheduler.increment_count(change).await.unwrap_err().code(), Code::Unimplemented);
    assert_eq!(scheduler.decrement_count(change).await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_function_is_no_error_and_changes_nothing() {
    let cluster = Cluster::at_rest().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let before = cluster.seen();
    let reply = cluster.try_submit(driver, "f", vec![]).await.unwrap();
    assert_eq!((reply.function_registered, reply.result.len()), (false, 0));
    assert!(cluster.seen() == before);
    assert_eq!(cluster.put(driver).await, 0, "no id was consumed");
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_store_waits_and_is_then_told_what_to_do() {
    let cluster = Cluster::start().await;
    let began = Instant::now();
    let request = pb::RegisterWorkerRequest { node_ip_address: "10.9.8.7".into(), ..Default::default() };
    let refused = cluster.scheduler().register_worker(request).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::Unavailable, "no-store"));
    assert!(refused.message().contains("10.9.8.7"), "{refused}");
    assert!(refused.message().contains("tripod objstore"), "{refused}");
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_faster_than_its_store_is_registered_when_the_store_is() {
    let cluster = Cluster::start().await;
    let request = pb::RegisterWorkerRequest { node_ip_address: HOST.to_owned(), ..Default::default() };
    let mut scheduler = cluster.scheduler();
    let registering = tokio::spawn(async move { scheduler.register_worker(request).await });
    let store = cluster.store().await;
    let reply = registering.await.unwrap().expect("registered").into_inner();
    assert_eq!((reply.workerid, reply.objstoreid), (0, store.id));
    assert_eq!(reply.worker_address, format!("{HOST}:40000"));
    assert_eq!(reply.objstore_address, store.address);
}

#[tokio::test(start_paused = true)]
async fn a_stamped_registration_waits_for_its_store_too() {
    let cluster = Cluster::start().await;
    let request = pb::RegisterWorkerRequest { node_ip_address: HOST.to_owned(), ..Default::default() };
    let session = [(metadata::RAY_SESSION, "0123456789abcdef0123456789abcdef"), (metadata::RAY_SEQ, "1")];
    let register = || {
        let (mut scheduler, request) = (cluster.scheduler(), with(request.clone(), &session));
        tokio::spawn(async move { scheduler.register_worker(request).await })
    };
    // Refused or not by the time the store is there, the same place in the session is used again.
    let first = register();
    until("the call has come", || cluster.seen().is_some()).await;
    let store = cluster.store().await;
    let reply = first.await.unwrap().expect("registered").into_inner();
    assert_eq!((reply.workerid, reply.objstoreid), (0, store.id));
    let again = register().await.unwrap().expect("registered");
    assert_eq!(again.metadata().get(metadata::RAY_REPLAYED).unwrap(), "1");
    assert_eq!(again.into_inner(), reply);
}

#[tokio::test(start_paused = true)]
async fn an_explicit_store_wins_and_hosts_are_compared_as_a_whole() {
    let cluster = Cluster::start().await;
    let (first, second) = (cluster.store().await, cluster.store().await);
    for store in [&first, &second] {
        let worker = cluster.new_worker(store).await;
        assert_eq!(worker.address, format!("{HOST}:{}", 40_000 + worker.id));
    }
    // The beginning of an address is another host.
    let request = pb::RegisterWorkerRequest {
        node_ip_address: HOST[..HOST.len() - 1].to_owned(),
        ..Default::default()
    };
    let refused = cluster.scheduler().register_worker(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn unknown_processes_are_refused() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let unknown = cluster.try_submit(99, "f", vec![]).await.unwrap_err();
    assert_eq!((unknown.code(), reason(&unknown)), (Code::NotFound, "no-worker"));
    let ready = pb::ReadyForNewTaskRequest { workerid: driver, previous_task_info: None };
    let refused = cluster.scheduler().ready_for_new_task(ready).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::FailedPrecondition, "driver"));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_header_refuses_the_call_and_changes_nothing() {
    let cluster = Cluster::at_rest().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let before = cluster.seen();
    let headers = [(metadata::RAY_SESSION, "not a session")];
    let put = with(pb::PutObjRequest { workerid: driver, hold: false }, &headers);
    let refused = cluster.scheduler().put_obj(put).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains(metadata::RAY_SESSION), "{refused}");
    assert!(cluster.seen() == before);
}

#[tokio::test(start_paused = true)]
async fn the_job_is_the_ports_or_the_one_that_the_caller_names() {
    let cluster = Cluster::start().await;
    let request = pb::RegisterObjStoreRequest { objstore_address: "10.0.0.1:1".to_owned() };
    let elsewhere = with(request.clone(), &[(metadata::JOB, "nowhere")]);
    let refused = cluster.scheduler().register_obj_store(elsewhere).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::NotFound, "no-job"));
    let here = with(request, &[(metadata::JOB, "default")]);
    assert_eq!(cluster.scheduler().register_obj_store(here).await.unwrap().into_inner().objstoreid, 0);
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_too_large_are_refused_as_such() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 0)]).await;
    let data = |bytes: usize| {
        let pyobj_data = Some(pb::PyObj { data: vec![7; bytes].into() });
        pb::Value { id: 0, obj: Some(pb::Obj { pyobj_data, ..Default::default() }) }
    };
    let task = cluster.try_submit(worker.id, "f", vec![data(1 << 20)]).await.unwrap_err();
    assert_eq!((task.code(), reason(&task)), (Code::ResourceExhausted, "full"));
    let message = submission(worker.id, "f", vec![data(tripod_ray::MESSAGE_BYTES_MAX)]);
    let refused = cluster.scheduler().submit_task(message).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
}
