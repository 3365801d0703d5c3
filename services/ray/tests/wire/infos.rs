//! `SchedulerInfo` and `TaskInfo`.

use tripod_proto::metadata;
use tripod_proto::ray as pb;

use crate::support::{Cluster, by_id, with};

#[tokio::test(start_paused = true)]
async fn a_small_run_is_shown_as_upstream_showed_it() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = cluster.worker(&store, &[("f", 1)]).await;
    cluster.put(driver).await;
    let waiting = cluster.put(driver).await;
    cluster.inc(&[waiting]).await;
    cluster.submit(driver, "f", vec![by_id(waiting)]).await;
    cluster.put(worker.id).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(worker.executes().await, "f");
    cluster.put(worker.id).await;
    cluster.get(driver, waiting).await;
    let info = cluster.info().await;
    assert_eq!(info.operationid, [2], "the one that waits for its argument");
    assert_eq!(info.avail_worker, [] as [u64; 0]);
    let function = &info.function_table["f"];
    assert_eq!((function.num_return_vals, &function.workerid[..]), (1, &[worker.id][..]));
    let unknown = u64::MAX;
    assert_eq!(info.target_objectid, [unknown; 6]);
    assert_eq!(info.reference_count, [1, 2, 3, 1, 3, 1]);
    let graph = info.computation_graph.unwrap().operation;
    let creators: Vec<u64> = graph.iter().map(|operation| operation.creator_operationid).collect();
    let (root, nobody) = (u64::MAX, u64::MAX - 1);
    assert_eq!(creators, [root, root, root, nobody, root, 4, root]);
    assert_eq!(graph[2].task.as_ref().unwrap().arg, [by_id(waiting)]);
    assert_eq!(graph[6].get, Some(pb::Get { objectid: waiting }));
}

#[tokio::test(start_paused = true)]
async fn failures_are_shown_in_the_order_of_their_reports_and_what_runs_by_worker() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let a = cluster.worker(&store, &[("f", 0)]).await;
    let b = cluster.worker(&store, &[("f", 0)]).await;
    cluster.submit(driver, "f", vec![]).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!((a.executes().await, b.executes().await), ("f".to_owned(), "f".to_owned()));
    cluster.failed(b.id, "second").await;
    cluster.failed(a.id, "first").await;
    cluster.submit(driver, "f", vec![]).await;
    cluster.settled().await;
    let info = cluster.task_info().await;
    let failed: Vec<_> =
        info.failed_task.iter().map(|task| (&task.worker_address, &task.error_message[..])).collect();
    assert_eq!(failed, [(&b.address, &b"second"[..]), (&a.address, &b"first"[..])]);
    assert_eq!(info.running_task.len(), 1);
    assert!(info.running_task[0].error_message.is_empty());
    assert_eq!(info.running_task[0].operationid, 2);
    assert_eq!(info.num_succeeded, 0);
}

#[tokio::test(start_paused = true)]
async fn who_reads_may_do_without_the_leader() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    cluster.put(driver).await;
    cluster.backend.depose();
    let stale = with(pb::SchedulerInfoRequest {}, &[(metadata::RAY_READ, "stale")]);
    let answer = cluster.scheduler().scheduler_info(stale).await.expect("without a leader");
    let index: u64 = answer.metadata().get(metadata::RAY_INDEX).unwrap().to_str().unwrap().parse().unwrap();
    assert!(index >= 4, "{index}");
    assert_eq!(answer.metadata().get(metadata::RAY_BASE_OBJECT).unwrap(), "0");
    assert_eq!(answer.into_inner().reference_count, [1]);
}
