//! Which task goes to which worker.

use crate::support::{Cluster, by_id, holding};

#[tokio::test(start_paused = true)]
async fn results_are_consecutive_and_held_three_times() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let worker = cluster.new_worker(&store).await;
    for (name, results) in [("none", 0), ("one", 1), ("three", 3)] {
        cluster.function(worker.id, name, results).await;
    }
    assert_eq!(cluster.submit(driver, "none", vec![]).await, [] as [u64; 0]);
    assert_eq!(cluster.submit(driver, "one", vec![]).await, [0]);
    assert_eq!(cluster.submit(driver, "three", vec![]).await, [1, 2, 3]);
    assert_eq!(cluster.counts().await, [3, 3, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_argument_refers_to_object_0() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 0)]).await;
    let driver = cluster.driver(&store).await;
    assert_eq!(cluster.put(driver).await, 0);
    cluster.inc(&[0]).await;
    cluster.submit(driver, "f", vec![by_id(0)]).await;
    cluster.settled().await;
    assert_eq!(worker.calls.take(), [], "it waits for object 0");
    cluster.ready(0, &store).await;
    let task = worker.task().await.task.unwrap();
    assert_eq!(task.arg, [by_id(0)]);
}

#[tokio::test(start_paused = true)]
async fn ids_inside_values_are_not_waited_for() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 0)]).await;
    let driver = cluster.driver(&store).await;
    let object = cluster.put(driver).await;
    cluster.inc(&[object]).await;
    cluster.submit(driver, "f", vec![holding(object)]).await;
    let task = worker.task().await.task.unwrap();
    assert_eq!(task.arg, [holding(object)], "as it was sent");
}

#[tokio::test(start_paused = true)]
async fn tasks_go_out_in_their_order_to_workers_that_know_the_function() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let other = cluster.worker(&store, &[("other", 0)]).await;
    let busy = cluster.worker(&store, &[("f", 0), ("g", 0)]).await;
    let driver = cluster.driver(&store).await;
    for name in ["f", "g", "f"] {
        cluster.submit(driver, name, vec![]).await;
    }
    for name in ["f", "g", "f"] {
        assert_eq!(busy.executes().await, name);
        cluster.settled().await;
        assert_eq!(busy.calls.take(), [], "one at a time");
        cluster.done(busy.id).await;
    }
    cluster.settled().await;
    assert_eq!(other.calls.take(), []);
}

#[tokio::test(start_paused = true)]
async fn a_task_with_fewer_objects_to_fetch_goes_first() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let driver = cluster.driver(&far).await;
    let (x, y) = (cluster.put(driver).await, cluster.put(driver).await);
    cluster.inc(&[x, y, x, y, x, x, y]).await;
    for object in [x, y] {
        cluster.ready(object, &far).await;
    }
    let worker = cluster.new_worker(&near).await;
    for name in ["both", "twice", "one", "none"] {
        cluster.function(worker.id, name, 0).await;
    }
    cluster.submit(driver, "both", vec![by_id(x), by_id(y)]).await;
    cluster.submit(driver, "twice", vec![by_id(x), by_id(x)]).await;
    cluster.submit(driver, "one", vec![by_id(y)]).await;
    cluster.submit(driver, "none", vec![]).await;
    cluster.idle(worker.id).await;
    for name in ["none", "one", "both", "twice"] {
        assert_eq!(worker.executes().await, name);
        cluster.done(worker.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_says_twice_that_it_is_idle_is_idle_once() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 0)]).await;
    cluster.idle(worker.id).await;
    assert_eq!(cluster.info().await.avail_worker, [worker.id]);
    let driver = cluster.driver(&store).await;
    cluster.submit(driver, "f", vec![]).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(worker.executes().await, "f");
    cluster.settled().await;
    assert_eq!(worker.calls.take(), [], "never two tasks at once");
    cluster.done(worker.id).await;
    assert_eq!(worker.executes().await, "f");
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_told_which_attempt_it_is_given() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 1)]).await;
    let driver = cluster.driver(&store).await;
    let [result] = cluster.submit(driver, "f", vec![]).await[..] else { panic!("one result") };
    let task = worker.task().await;
    assert_eq!((task.operationid, task.attempt, task.workerid), (Some(0), 1, Some(worker.id)));
    assert_eq!(task.task.unwrap().result, [result]);
    assert!(task.store_output.iter().all(|store| *store), "{:?}", task.store_output);
}
