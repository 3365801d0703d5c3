//! Silence and what becomes of it.

use std::time::Duration;

use prost::Message as _;
use tonic::Code;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::tripod::v1::HeartbeatRequest;
use tripod_proto::tripod::v1::heartbeat_request::Kind as Who;
use tripod_proto::tripod::v1::heartbeat_response::Order;
use tripod_ray::Patience;
use tripod_state::ray::ids::WorkerId;
use tripod_state::ray::view::WorkerLife;

use crate::support::store::Call;
use crate::support::worker::Worker;
use crate::support::{Cluster, Kind, reason, submission, until, with};

/// Short, and long enough for a machine that is busy with other tests.
fn quick() -> Patience {
    Patience {
        ttl_min: Duration::from_millis(500),
        grace: Duration::from_millis(1000),
        failover_min: Duration::from_millis(3000),
        ..Patience::default()
    }
}

async fn quick_cluster() -> Cluster {
    Cluster::of(Kind { patience: quick(), ..Kind::default() }).await
}

fn is_dead(cluster: &Cluster, worker: u64) -> bool {
    let state = cluster.backend.state();
    let ray = state.ray(cluster.job).expect("there is a scheduler");
    let worker = ray.worker(WorkerId(worker)).expect("it is remembered");
    matches!(worker.life, WorkerLife::Dead(_))
}

async fn beat(cluster: &Cluster, kind: Who, id: u64) -> (Order, u64) {
    let request = HeartbeatRequest { kind: kind.into(), id, ..Default::default() };
    let answer = cluster.membership().heartbeat(request).await.expect("answered").into_inner();
    (answer.order(), answer.ttl_ms)
}

#[tokio::test]
async fn a_worker_of_2016_that_died_is_given_up_and_one_that_lives_is_not() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let living = cluster.worker(&store, &[("f", 0)]).await;
    let mut dying = cluster.worker(&store, &[("f", 0)]).await;
    let driver = cluster.driver(&store).await;
    dying.die();
    until("it is given up", || is_dead(&cluster, dying.id)).await;
    assert!(!is_dead(&cluster, living.id) && !is_dead(&cluster, driver));
    let refused = cluster.try_submit(dying.id, "f", vec![]).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::FailedPrecondition, "expired"));
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(living.executes().await, "f");
}

#[tokio::test]
async fn a_worker_of_ours_lives_as_long_as_it_beats() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let extended = [(metadata::RAY_EXTENDED, "1")];
    let beating = Worker::start(&cluster, &store, &extended).await;
    let silent = Worker::start(&cluster, &store, &extended).await;
    let (order, ttl_ms) = beat(&cluster, Who::Worker, beating.id).await;
    assert_eq!(order, Order::None);
    assert!((500..1000).contains(&ttl_ms), "{ttl_ms}");
    while !is_dead(&cluster, silent.id) {
        assert_eq!(beat(&cluster, Who::Worker, beating.id).await.0, Order::None);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(beat(&cluster, Who::Worker, silent.id).await.0, Order::Reregister);
    assert_eq!(beat(&cluster, Who::Worker, 99).await.0, Order::Reregister, "nobody");
    assert_eq!(beat(&cluster, Who::Store, store.id).await.0, Order::None);
    let nobody = HeartbeatRequest::default();
    assert_eq!(cluster.membership().heartbeat(nobody).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn after_an_election_everybody_has_time_anew() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let silent = Worker::start(&cluster, &store, &[(metadata::RAY_EXTENDED, "1")]).await;
    let began = std::time::Instant::now();
    cluster.fail_over();
    until("it is given up", || is_dead(&cluster, silent.id)).await;
    assert!(began.elapsed() >= quick().failover_min, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_task_whose_worker_died_is_done_by_another() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let mut dying = cluster.worker(&store, &[("f", 0)]).await;
    let driver = cluster.driver(&store).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(dying.task().await.attempt, 1);
    let living = cluster.worker(&store, &[("f", 0)]).await;
    dying.die();
    let again = living.task().await;
    assert_eq!((again.operationid, again.attempt), (Some(0), 2));
    cluster.done(living.id).await;
    assert_eq!(cluster.task_info().await.num_succeeded, 1);
}

#[tokio::test]
async fn who_waits_for_an_object_that_is_lost_is_told_why() {
    let cluster = quick_cluster().await;
    let near = cluster.store().await;
    let mut far = cluster.store().await;
    let driver = cluster.driver(&near).await;
    let putter = cluster.driver(&far).await;
    let object = cluster.put(putter).await;
    cluster.inc(&[object]).await;
    cluster.ready(object, &far).await;
    near.calls.answer(|_| Err(tonic::Status::unavailable("not now")));
    cluster.get(driver, object).await;
    far.die();
    until("the store is given up", || {
        let state = cluster.backend.state();
        state.ray(cluster.job).unwrap().stores().iter().any(|store| !store.alive)
    })
    .await;
    near.calls.answer(|_| Ok(()));
    let here = cluster.address.to_string();
    loop {
        match near.calls.next().await {
            Call::Deliver { from, object: told } if from == here => {
                assert_eq!(told, object);
                break;
            }
            other => assert_eq!(other, Call::Deliver { from: far.address.clone(), object }),
        }
    }
    let mut node = pb::obj_store_client::ObjStoreClient::new(crate::support::connect(cluster.address).await);
    let asked = pb::StreamObjToRequest { objectid: object, ..Default::default() };
    let mut chunks = node.stream_obj_to(asked).await.expect("it has failed").into_inner();
    let chunk = chunks.message().await.unwrap().expect("one chunk");
    assert_eq!((chunk.total_size, chunk.metadata_offset), (chunk.data.len() as u64, 0));
    let value = pb::Obj::decode(chunk.data).unwrap().dict_data.expect("a dict");
    let text = |obj: &Option<pb::Obj>| obj.clone().unwrap().string_data.unwrap().data;
    assert_eq!(text(&value.elem[0].key), "tripod.error");
    assert_eq!(text(&value.elem[0].value), "PUT_OBJECT");
    let request = pb::RequestObjRequest { workerid: driver, objectid: object };
    let told = cluster.scheduler().request_obj(request).await.expect("OK all the same");
    assert_eq!(told.metadata().get(metadata::RAY_REASON).unwrap(), "PUT_OBJECT");
}

#[tokio::test]
async fn the_references_of_a_driver_of_ours_go_with_it() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let session = [
        (metadata::RAY_SESSION, "00000000000000000000000000000001"),
        (metadata::RAY_SEQ, "1"),
        (metadata::RAY_EXTENDED, "1"),
    ];
    let request = pb::RegisterWorkerRequest {
        node_ip_address: cluster.host.to_string(),
        objstore_address: store.address.clone(),
        is_driver: true,
    };
    let reply = cluster.scheduler().register_worker(with(request, &session)).await.expect("registered");
    let driver = reply.into_inner().workerid;
    let object = cluster.put(driver).await;
    let named = driver.to_string();
    let inc = pb::IncrementRefCountRequest { objectid: vec![object] };
    let inc = with(inc, &[(metadata::RAY_WORKER, &named)]);
    cluster.scheduler().increment_ref_count(inc).await.expect("incremented");
    cluster.ready(object, &store).await;
    assert_eq!(cluster.counts().await, [1]);
    until("it is given up", || is_dead(&cluster, driver)).await;
    assert_eq!(cluster.counts().await, [-1]);
    assert_eq!(store.calls.next().await, Call::Deallocate(object));
}

#[tokio::test]
async fn the_report_of_a_worker_that_was_given_up_changes_nothing() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let mut worker = cluster.worker(&store, &[("f", 0)]).await;
    let driver = cluster.driver(&store).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(worker.executes().await, "f");
    worker.die();
    until("it is given up", || is_dead(&cluster, worker.id)).await;
    let previous =
        pb::ready_for_new_task_request::PreviousTaskInfo { task_succeeded: true, ..Default::default() };
    let report = pb::ReadyForNewTaskRequest { workerid: worker.id, previous_task_info: Some(previous) };
    let refused = cluster.scheduler().ready_for_new_task(report).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::FailedPrecondition, "expired"));
    assert_eq!(cluster.task_info().await.num_succeeded, 0);
}

#[tokio::test]
async fn the_children_of_a_task_that_is_run_again_keep_their_objects() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let mut dying = cluster.worker(&store, &[("parent", 1), ("child", 1)]).await;
    let driver = cluster.driver(&store).await;
    cluster.submit(driver, "parent", vec![]).await;
    assert_eq!(dying.executes().await, "parent");
    let submit = |from: u64| {
        let request = with(submission(from, "child", vec![]), &[(metadata::RAY_CHILD, "0")]);
        let mut scheduler = cluster.scheduler();
        async move { scheduler.submit_task(request).await.expect("submitted").into_inner().result }
    };
    let first = submit(dying.id).await;
    let living = cluster.worker(&store, &[("parent", 1), ("child", 1)]).await;
    assert_eq!(living.executes().await, "child");
    dying.die();
    until("it is given up", || is_dead(&cluster, dying.id)).await;
    cluster.ready(first[0], &store).await;
    cluster.done(living.id).await;
    let again = living.task().await;
    assert_eq!((again.task.expect("a task").name, again.attempt), ("parent".into(), 2));
    assert_eq!(submit(living.id).await, first, "the child is not run again");
    assert_eq!(cluster.info().await.operationid, [] as [u64; 0]);
}
