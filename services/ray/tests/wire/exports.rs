//! Functions and variables for all workers, and the end of workers.

use crate::support::Cluster;
use crate::support::worker::Call;

fn function(name: &str) -> Call {
    Call::Function(name.to_owned())
}

fn variable(name: &str) -> Call {
    Call::Variable(name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn every_worker_gets_every_export_in_order_before_its_first_task() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let live = [cluster.worker(&store, &[("f", 0)]).await, cluster.worker(&store, &[]).await];
    let not_ready = cluster.new_worker(&store).await;
    cluster.export("one").await;
    cluster.export_variable("x").await;
    cluster.export("two").await;
    for worker in &live {
        for expected in [function("one"), variable("x"), function("two")] {
            assert_eq!(worker.calls.next().await, expected);
        }
        assert_eq!(worker.exports.take(), [Some(0), Some(1), Some(2)], "numbered, so a late one is known");
    }
    cluster.settled().await;
    // What it is told before it is ready it is told again; only the order within counts.
    not_ready.calls.take();
    not_ready.exports.take();
    let new = cluster.new_worker(&store).await;
    for worker in [&not_ready, &new] {
        cluster.function(worker.id, "g", 0).await;
        cluster.submit(driver, "g", vec![]).await;
        cluster.idle(worker.id).await;
        // Functions come before variables then.
        for expected in [function("one"), function("two"), variable("x")] {
            assert_eq!(worker.calls.next().await, expected);
        }
        assert_eq!(worker.exports.take(), [Some(0), Some(2), Some(1)], "by their exports, not by the worker");
        assert_eq!(worker.executes().await, "g");
    }
    for worker in &live {
        assert_eq!(worker.calls.take(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn workers_are_killed_only_when_there_is_nothing_to_do() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = cluster.worker(&store, &[("f", 0)]).await;
    let not_ready = cluster.new_worker(&store).await;
    cluster.export("one").await;
    assert_eq!(worker.calls.next().await, function("one"));
    cluster.submit(driver, "f", vec![]).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(worker.executes().await, "f");
    assert!(!cluster.kill_workers().await, "one is busy and a task is queued");
    cluster.done(worker.id).await;
    assert_eq!(worker.executes().await, "f");
    assert!(!cluster.kill_workers().await, "one is busy");
    cluster.done(worker.id).await;
    not_ready.calls.take();
    assert!(cluster.kill_workers().await);
    assert_eq!(worker.calls.next().await, Call::Die);
    loop {
        match not_ready.calls.next().await {
            Call::Die => break,
            Call::Function(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let info = cluster.info().await;
    assert_eq!((info.function_table.len(), info.avail_worker.len()), (0, 0));
    assert!(!cluster.try_submit(driver, "f", vec![]).await.unwrap().function_registered);
    assert!(cluster.kill_workers().await, "again");
    cluster.settled().await;
    let new = cluster.new_worker(&store).await;
    cluster.idle(new.id).await;
    assert_eq!(new.calls.next().await, function("one"), "exports outlive workers");
}
