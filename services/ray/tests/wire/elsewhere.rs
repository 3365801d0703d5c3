//! Tasks of which an argument cannot come to the store of an idle worker.

use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::{RayBatchRequest, RayCall, RayGiveBackRequest, RayRun};
use tripod_state::ray::Peer;
use tripod_state::ray::ids::WorkerId;

use crate::support::worker::Worker;
use crate::support::{Cluster, by_id};

/// The worker does not begin the attempt, as its store says that an argument does not come.
async fn gives_back(cluster: &Cluster, worker: &Worker, operationid: u64, attempt: u32) {
    let given = RayGiveBackRequest { workerid: worker.id, runs: vec![RayRun { operationid, attempt }] };
    let call = RayCall { call: Some(Call::GiveBack(given)), ..RayCall::default() };
    let request = RayBatchRequest { workerid: None, calls: vec![call] };
    let answer = cluster.ray().batch(request).await.expect("answered").into_inner();
    assert_eq!(answer.results[0].code, 0, "{answer:?}");
}

/// What a worker is told of its next task: which one, which attempt, and whether others may be able to do it.
async fn next(worker: &Worker) -> (u64, u32, bool) {
    let told = worker.task().await;
    (told.operationid.expect("ours tell it"), told.attempt, told.elsewhere)
}

/// Waits until a worker is told to begin an attempt; whether others may be able to do it. What a new leader says once
/// more is passed by.
async fn begins(worker: &Worker, operation: u64, attempt: u32) -> bool {
    loop {
        let told = next(worker).await;
        if (told.0, told.1) == (operation, attempt) {
            return told.2;
        }
        assert!(told.1 < attempt || told.0 < operation, "{told:?}");
    }
}

/// The first worker's store is too small for the argument, or does not reach it; the other worker is busy. The task
/// waits for that one, and nothing else does. When the other one is dead, the task goes back to the first, which is told
/// that nobody else can do it.
#[tokio::test(start_paused = true)]
async fn a_task_whose_argument_cannot_come_to_a_store_is_left_to_the_workers_of_others() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let (driver, putter) = (cluster.driver(&near).await, cluster.driver(&far).await);
    let first = cluster.worker(&near, &[("f", 0)]).await;
    let mut other = cluster.worker(&far, &[("f", 0), ("long", 0)]).await;
    let [object, alias] = [cluster.put(putter).await, cluster.put(putter).await];
    cluster.inc(&[object, alias, alias]).await;
    far.hold(object);
    cluster.ready(object, &far).await;
    cluster.alias(alias, object).await.expect("aliased");
    cluster.submit(driver, "long", vec![]).await;
    assert_eq!(next(&other).await, (2, 1, false), "nothing can keep it from being executed there");

    cluster.submit(driver, "f", vec![by_id(alias)]).await;
    assert_eq!(next(&first).await, (3, 1, true));
    assert_eq!(near.fetches().await, object);
    assert_eq!(cluster.fetch_failed(object, near.id, "", true).await.code, 0);
    gives_back(&cluster, &first, 3, 1).await;
    // Of the two that wait the older one is not for this worker.
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(next(&first).await, (4, 1, false));
    cluster.done(first.id).await;
    cluster.done(other.id).await;
    assert_eq!(next(&other).await, (3, 2, true));

    other.die();
    cluster.expire(vec![Peer::Worker(WorkerId(other.id))]).await;
    assert_eq!(next(&first).await, (3, 3, false), "if it cannot do it, the task is to fail");
}

/// What a leader has heard dies with it. The next one hears of it again.
#[tokio::test(start_paused = true)]
async fn a_leader_that_has_not_heard_of_it_has_a_task_begun_in_vain_once_more() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let (driver, putter) = (cluster.driver(&near).await, cluster.driver(&far).await);
    let first = cluster.worker(&near, &[("f", 0)]).await;
    let other = cluster.worker(&far, &[("f", 0), ("long", 0)]).await;
    let object = cluster.put(putter).await;
    cluster.inc(&[object, object]).await;
    far.hold(object);
    cluster.ready(object, &far).await;
    cluster.submit(driver, "long", vec![]).await;
    begins(&other, 1, 1).await;
    cluster.submit(driver, "f", vec![by_id(object)]).await;
    for attempt in 1..=2 {
        assert!(begins(&first, 2, attempt).await);
        assert_eq!(near.fetches().await, object);
        if attempt == 1 {
            cluster.fail_over();
        }
        assert_eq!(cluster.fetch_failed(object, near.id, "", true).await.code, 0);
        if attempt == 1 {
            // It heard of it before it began to lead.
            cluster.fail_over();
        }
        gives_back(&cluster, &first, 2, attempt).await;
    }
    cluster.done(other.id).await;
    begins(&other, 2, 3).await;
}
