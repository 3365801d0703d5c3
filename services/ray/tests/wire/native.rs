//! Our own calls.

use tonic::Code;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_result::Reply;
use tripod_proto::tripod::v1::{RayBatchRequest, RayCall, RayStatusRequest, RayTasksRequest, RayWaitRequest};

use crate::support::{Cluster, until, with};

fn call(call: Call) -> RayCall {
    RayCall { call: Some(call), ..Default::default() }
}

fn wait(objectids: &[u64], at_least: u32, timeout_ms: u64) -> RayWaitRequest {
    RayWaitRequest { objectids: objectids.to_vec(), at_least, timeout_ms }
}

#[tokio::test(start_paused = true)]
async fn a_batch_takes_effect_once_and_each_call_by_itself() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let calls = vec![
        call(Call::Put(pb::PutObjRequest { workerid: driver, hold: true })),
        call(Call::Decrement(pb::DecrementRefCountRequest { objectid: vec![77] })),
        call(Call::Increment(pb::IncrementRefCountRequest { objectid: vec![0] })),
    ];
    let session = [(metadata::RAY_SESSION, "ffffffffffffffffffffffffffffffff"), (metadata::RAY_SEQ, "1")];
    let batch = || with(RayBatchRequest { workerid: None, calls: calls.clone() }, &session);
    let first = cluster.ray().batch(batch()).await.expect("answered").into_inner();
    assert!(!first.replayed);
    let Some(Reply::Put(put)) = &first.results[0].reply else { panic!("{first:?}") };
    assert_eq!(put.objectid, 0);
    assert_eq!((first.results[1].code, first.results[1].reason.as_str()), (5, "no-object"));
    assert_eq!(first.results[2].code, 0);
    assert_eq!(cluster.counts().await, [3], "until it is made, of who put it, and of the call after that");
    let again = cluster.ray().batch(batch()).await.expect("answered").into_inner();
    assert!(again.replayed);
    assert_eq!(again.results, first.results);
    assert_eq!(cluster.counts().await, [3]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_enough_can_be_had() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let objects = [cluster.put(driver).await, cluster.put(driver).await, cluster.put(driver).await];
    cluster.inc(&objects).await;
    let places = |answer: tonic::Response<tripod_proto::tripod::v1::RayWaitResponse>| {
        answer.into_inner().objects.iter().map(|waited| waited.place).collect::<Vec<_>>()
    };
    assert_eq!(places(cluster.ray().wait(wait(&objects, 0, 0)).await.unwrap()), [] as [u32; 0]);
    let mut ray = cluster.ray();
    let waiting = tokio::spawn(async move { ray.wait(wait(&objects, 2, 60_000)).await });
    cluster.ready(objects[2], &store).await;
    cluster.ready(objects[0], &store).await;
    assert_eq!(places(waiting.await.unwrap().unwrap()), [0, 2], "in the order of the request");
    let late = cluster.ray().wait(wait(&objects, 0, 50)).await.unwrap();
    assert_eq!(places(late), [0, 2]);
    let unknown = cluster.ray().wait(wait(&[99], 0, 0)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn people_see_workers_stores_and_tasks() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = cluster.worker(&store, &[("m.f", 1)]).await;
    cluster.submit(driver, "m.f", vec![]).await;
    cluster.submit(driver, "m.f", vec![]).await;
    assert_eq!(worker.executes().await, "m.f");
    let beat = tripod_proto::tripod::v1::HeartbeatRequest {
        kind: 2,
        id: store.id,
        used_bytes: 5,
        capacity_bytes: 9,
        ..Default::default()
    };
    // The leader begins to watch a store soon after it has registered.
    let shown = tripod_wait::until_async("the store's figures", || async {
        cluster.membership().heartbeat(beat.clone()).await.expect("answered");
        let shown = cluster.ray().status(RayStatusRequest {}).await.expect("answered").into_inner();
        (shown.stores[0].used_bytes == 5).then_some(shown)
    });
    let shown = shown.await;
    assert_eq!((shown.tasks_queued, shown.tasks_running, shown.functions), (1, 1, 1));
    assert_eq!((shown.stores[0].state.as_str(), shown.stores[0].capacity_bytes), ("alive", 9));
    let states: Vec<_> =
        shown.workers.iter().map(|worker| (worker.kind.as_str(), worker.state.as_str())).collect();
    assert_eq!(states[1], ("worker", "busy"));
    assert_eq!(states[0].0, "driver");
    let tasks = |state: &str| RayTasksRequest { limit: 0, state: state.to_owned() };
    let all = cluster.ray().tasks(tasks("")).await.expect("answered").into_inner().tasks;
    let listed: Vec<_> = all.iter().map(|task| (task.operationid, task.state.as_str())).collect();
    assert_eq!(listed, [(1, "queued"), (0, "running")], "newest first");
    assert_eq!((all[1].function_name.as_str(), all[1].workerid), ("m.f", Some(worker.id)));
    let running = cluster.ray().tasks(tasks("running")).await.expect("answered").into_inner().tasks;
    assert_eq!(running.len(), 1);
    let wrong = cluster.ray().tasks(tasks("asleep")).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    assert!(wrong.message().contains("queued"), "{wrong}");
    until("all is told", || cluster.totals().orders == 0).await;
}
