//! References: what is counted, and when objects go.

use tonic::Code;

use crate::support::store::Call;
use crate::support::worker::{self, Worker};
use crate::support::{Cluster, Kind, reason};

/// As upstream's worker does when it unpacks a task: a handle for each result, and the task's holds dropped.
async fn unpack(cluster: &Cluster, worker: &Worker) -> Vec<u64> {
    let results = worker.task().await.task.expect("a task").result;
    if !results.is_empty() {
        cluster.inc(&results).await;
        cluster.dec(&results).await;
    }
    results
}

/// As upstream's driver does with an accepted task: a handle for each result, and the reply's hold dropped.
async fn call(cluster: &Cluster, driver: u64, name: &'static str) -> Vec<u64> {
    let results = cluster.submit(driver, name, vec![]).await;
    cluster.inc(&results).await;
    cluster.dec(&results).await;
    results
}

#[tokio::test(start_paused = true)]
async fn a_result_is_counted_once_while_its_handle_lives() {
    one_result(&Cluster::start().await).await;
}

#[tokio::test(start_paused = true)]
async fn a_result_is_counted_once_with_a_new_leader_after_every_call() {
    one_result(&Cluster::of(Kind { fails_over: true, ..Kind::default() }).await).await;
}

async fn one_result(cluster: &Cluster) {
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 1)]).await;
    let driver = cluster.driver(&store).await;
    let results = call(cluster, driver, "f").await;
    unpack(cluster, &worker).await;
    cluster.ready(results[0], &store).await;
    cluster.dec(&results).await;
    cluster.done(worker.id).await;
    assert_eq!(cluster.counts().await, [1]);
    cluster.dec(&results).await;
    assert_eq!(cluster.counts().await, [-1]);
    assert_eq!(store.calls.next().await, Call::Deallocate(results[0]));
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_aliases_lives_and_goes_as_a_whole() {
    chain(&Cluster::start().await).await;
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_aliases_lives_and_goes_with_a_new_leader_after_every_call() {
    chain(&Cluster::of(Kind { fails_over: true, ..Kind::default() }).await).await;
}

async fn chain(cluster: &Cluster) {
    let store = cluster.store().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(cluster.worker(&store, &[("h", 1), ("g", 1), ("f", 1)]).await);
    }
    let driver = cluster.driver(&store).await;
    let h = call(cluster, driver, "h").await[0];
    // Each task of the chain returns the result of the next, which it submits itself.
    let runs = |name: &'static str| {
        // A new leader gives a worker of 2016 its task again: the name tells it apart.
        let is = move |call: worker::Call| match call {
            worker::Call::Execute(task) => task.task.expect("a task").name == name,
            _ => false,
        };
        let workers = &workers;
        tripod_wait::until(name, move || {
            workers.iter().find(|worker| worker.calls.take().into_iter().any(is)).map(|worker| worker.id)
        })
    };
    let runner_h = runs("h").await;
    cluster.inc(&[h]).await;
    cluster.dec(&[h]).await;
    let g = call(cluster, runner_h, "g").await[0];
    cluster.alias(h, g).await.expect("aliased");
    cluster.dec(&[h, g]).await;
    cluster.done(runner_h).await;
    let runner_g = runs("g").await;
    cluster.inc(&[g]).await;
    cluster.dec(&[g]).await;
    let f = call(cluster, runner_g, "f").await[0];
    cluster.alias(g, f).await.expect("aliased");
    cluster.dec(&[g, f]).await;
    cluster.done(runner_g).await;
    let runner_f = runs("f").await;
    cluster.inc(&[f]).await;
    cluster.dec(&[f]).await;
    cluster.ready(f, &store).await;
    cluster.dec(&[f]).await;
    cluster.done(runner_f).await;
    assert_eq!(cluster.counts().await, [1, 0, 0]);
    cluster.dec(&[h]).await;
    assert_eq!(cluster.counts().await, [-1, -1, -1]);
    assert_eq!(store.calls.next().await, Call::Deallocate(f));
    cluster.settled().await;
    let more = store.calls.take();
    assert!(more.iter().all(|call| *call == Call::Deallocate(f)), "aliases have no copies: {more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_drops_is_taken_as_a_whole() {
    let cluster = Cluster::at_rest().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let object = cluster.put(driver).await;
    let before = cluster.seen();
    let refused = cluster.try_dec(&[object, object]).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::FailedPrecondition, "too-few-references"));
    assert_eq!(cluster.try_dec(&[]).await.unwrap_err().code(), Code::InvalidArgument);
    assert!(cluster.seen() == before);
    assert_eq!(cluster.counts().await, [1]);
}

#[tokio::test(start_paused = true)]
async fn what_an_object_contains_goes_with_it() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let other = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let [outer, x, y] = [cluster.put(driver).await, cluster.put(driver).await, cluster.put(driver).await];
    cluster.inc(&[outer, x, y]).await;
    for object in [outer, x, y] {
        cluster.ready(object, &store).await;
    }
    cluster.contain(outer, &[x, y]).await.unwrap();
    assert_eq!(cluster.contain(outer, &[x]).await.unwrap_err().code(), Code::FailedPrecondition);
    let elsewhere = cluster.driver(&other).await;
    cluster.get(elsewhere, outer).await;
    assert_eq!(other.fetches().await, outer);
    cluster.ready(outer, &other).await;
    cluster.settled().await;
    cluster.dec(&[outer]).await;
    assert_eq!(cluster.counts().await, [-1, -1, -1]);
    cluster.settled().await;
    assert_eq!(other.calls.take(), [Call::Deallocate(outer)]);
    let mut gone = store.calls.take();
    gone.sort_by_key(|call| format!("{call:?}"));
    assert_eq!(gone, [Call::Deallocate(outer), Call::Deallocate(x), Call::Deallocate(y)]);
}

#[tokio::test(start_paused = true)]
async fn containers_within_containers_go_to_any_depth() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let mut outer = cluster.put(driver).await;
    cluster.inc(&[outer]).await;
    cluster.ready(outer, &store).await;
    let depth = 1000;
    for _ in 0..depth {
        let object = cluster.put(driver).await;
        cluster.inc(&[object]).await;
        cluster.ready(object, &store).await;
        cluster.contain(object, &[outer]).await.unwrap();
        outer = object;
    }
    cluster.dec(&[outer]).await;
    assert!(cluster.counts().await.iter().all(|count| *count == -1));
    cluster.settled().await;
    assert_eq!(store.calls.take().len(), depth + 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_to_be_in_an_object_that_is_gone_is_dropped_at_once() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let [outer, inner] = [cluster.put(driver).await, cluster.put(driver).await];
    cluster.inc(&[outer, inner]).await;
    cluster.ready(inner, &store).await;
    cluster.ready(outer, &store).await;
    cluster.dec(&[outer]).await;
    cluster.contain(outer, &[inner]).await.unwrap();
    assert_eq!(cluster.counts().await, [-1, -1]);
}
