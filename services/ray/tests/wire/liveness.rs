//! Silence and what becomes of it.

use std::time::Duration;

use tokio::time::Instant;
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
use crate::support::{Cluster, HOST, Kind, reason, until, with};

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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn after_an_election_everybody_has_time_anew() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let silent = Worker::start(&cluster, &store, &[(metadata::RAY_EXTENDED, "1")]).await;
    let began = Instant::now();
    cluster.fail_over();
    until("it is given up", || is_dead(&cluster, silent.id)).await;
    assert!(began.elapsed() >= quick().failover_min, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_references_of_a_driver_of_ours_go_with_it() {
    let cluster = quick_cluster().await;
    let store = cluster.store().await;
    let session = [
        (metadata::RAY_SESSION, "00000000000000000000000000000001"),
        (metadata::RAY_SEQ, "1"),
        (metadata::RAY_EXTENDED, "1"),
    ];
    let request = pb::RegisterWorkerRequest {
        node_ip_address: HOST.to_owned(),
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
