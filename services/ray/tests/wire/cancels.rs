//! Tasks with needs, and tasks that are not to run any more.

use std::time::Duration;

use tripod_proto::metadata;
use tripod_proto::tripod::v1::heartbeat_request::Kind as Who;
use tripod_proto::tripod::v1::ray_call::Call as Asked;
use tripod_proto::tripod::v1::ray_result::Reply;
use tripod_proto::tripod::v1::{
    HeartbeatRequest, RayBatchRequest, RayCall, RayCancelRequest, RayResult, RayRun, RayTaskOptions,
    RayTasksRequest,
};
use tripod_state::ray::ids::WorkerId;
use tripod_state::ray::view::{Availability, Reason, WorkerLife};

use crate::support::worker::{Call, Worker};
use crate::support::{Cluster, submission, until};

async fn one(cluster: &Cluster, call: RayCall) -> RayResult {
    let batch = RayBatchRequest { workerid: None, calls: vec![call] };
    let mut answer = cluster.ray().batch(batch).await.expect("answered").into_inner();
    answer.results.pop().expect("one result")
}

async fn cancel(cluster: &Cluster, workerid: u64, objectid: u64, grace_ms: u64) -> bool {
    let asked = Asked::Cancel(RayCancelRequest { workerid, objectid, grace_ms });
    let told = one(cluster, RayCall { call: Some(asked), ..Default::default() }).await;
    let Some(Reply::Cancel(told)) = told.reply else { panic!("{told:?}") };
    told.over
}

fn is_cancelled(cluster: &Cluster, object: u64) -> bool {
    let found = cluster.availability(object);
    matches!(found, Some(Availability::Failed(failure)) if failure.reason == Reason::Cancelled)
}

fn life(cluster: &Cluster, worker: u64) -> WorkerLife {
    let state = cluster.backend.state();
    let ray = state.ray(cluster.job).expect("there is a scheduler");
    ray.worker(WorkerId(worker)).expect("it is remembered").life
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_told_to_end_a_run_and_whatever_it_says_then_the_task_was_cancelled() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = Worker::start_lined(&cluster, &store).await;
    cluster.function(worker.id, "f", 1).await;
    cluster.idle(worker.id).await;
    let objects =
        [cluster.submit(driver, "f", vec![]).await[0], cluster.submit(driver, "f", vec![]).await[0]];
    assert_eq!(worker.executes().await, "f");
    assert_eq!(worker.executes().await, "f");
    assert!(!cancel(&cluster, driver, objects[0], 2_000).await);
    let run = RayRun { operationid: 0, attempt: 1 };
    assert_eq!(worker.calls.next().await, Call::Cancel(run, 2_000));
    cluster.done(worker.id).await;
    assert!(is_cancelled(&cluster, objects[0]) && !is_cancelled(&cluster, objects[1]));
    assert!(cancel(&cluster, driver, objects[0], 2_000).await, "it is over");
    until("all is told", || cluster.totals().orders == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_end_what_it_was_to_end_is_given_up_though_it_beats() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = Worker::start_lined(&cluster, &store).await;
    cluster.function(worker.id, "f", 1).await;
    cluster.idle(worker.id).await;
    let object = cluster.submit(driver, "f", vec![]).await[0];
    assert_eq!(worker.executes().await, "f");
    assert!(!cancel(&cluster, driver, object, 100).await);
    let beat = HeartbeatRequest { kind: Who::Worker.into(), id: worker.id, ..Default::default() };
    let why = loop {
        if let WorkerLife::Dead(why) = life(&cluster, worker.id) {
            break why;
        }
        cluster.membership().heartbeat(beat.clone()).await.expect("answered");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(why.contains("cancelled"), "{why}");
    assert!(is_cancelled(&cluster, object));
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_a_worker_that_has_what_it_needs_and_says_so() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let plain = cluster.worker(&store, &[("f", 0)]).await;
    let submit = |priority| {
        let options = RayTaskOptions {
            priority,
            resources_milli: [("gpu".to_owned(), 1_000)].into(),
            ..Default::default()
        };
        let call = Some(Asked::Submit(submission(driver, "f", vec![])));
        RayCall { call, options: Some(options), ..Default::default() }
    };
    for priority in [0, 5] {
        let told = one(&cluster, submit(priority)).await;
        assert_eq!(told.code, 0, "{told:?}");
    }
    let all = RayTasksRequest { limit: 0, state: String::new() };
    let listed = cluster.ray().tasks(all).await.expect("answered").into_inner().tasks;
    assert!(listed.iter().all(|task| task.error == "needs gpu 1.0; no worker has it"), "{listed:?}");
    let headers = [(metadata::RAY_EXTENDED, "1"), (metadata::RAY_RESOURCES_MILLI, "gpu=1000")];
    let able = Worker::start(&cluster, &store, &headers).await;
    cluster.function(able.id, "f", 0).await;
    cluster.idle(able.id).await;
    let given = able.task().await;
    assert_eq!(given.operationid, Some(1), "the one of the higher priority");
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(plain.task().await.operationid, Some(2), "what needs nothing goes to anybody");
}
