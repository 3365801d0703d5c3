//! A scheduler with real nodes, object stores and workers, in the middle of which the network is cut.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tonic::{Request, Status};
use tripod_client::Scheduler;
use tripod_client::wire::{RayTask, RayTasksRequest};
use tripod_processes::cluster::{Cluster, ClusterOptions, Peers};
use tripod_processes::proxy::{Flow, LinkEnd};
use tripod_proto::metadata;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::ray::{PutObjRequest, SchedulerInfoRequest};
use tripod_wait::{deadline, until_async};
use tripod_worker::{Config, Driver, ObjectRef, Task};

/// How long the minority is asked in vain.
const IN_VAIN: Duration = Duration::from_secs(3);
const WORKERS: usize = 4;

async fn submit(driver: &Driver, task: Task) -> ObjectRef {
    driver.submit(&task).await.unwrap().pop().unwrap()
}

/// Sums of two numbers each, behind tasks that take their time; and what they come to.
async fn work(driver: &Driver, round: i64) {
    let (mut slow, mut sums) = (Vec::new(), Vec::new());
    for number in 0..12 {
        slow.push(submit(driver, Task::of("tripod.sleep").arg(&100).unwrap()).await);
        sums.push(submit(driver, Task::of("tripod.add").arg(&number).unwrap().arg(&round).unwrap()).await);
    }
    for (number, sum) in (0..).zip(&sums) {
        assert_eq!(driver.get_within::<i64>(sum, deadline()).await.unwrap(), number + round);
    }
    for slept in &slow {
        driver.get_within::<()>(slept, deadline()).await.unwrap();
    }
}

/// What is answered before the time is over, if anything is. A node that is cut off ends its clients' connections once:
/// what that does to a call is no answer, so the call is made again.
async fn answered<R>(call: impl AsyncFn() -> Result<R, Status>) -> Option<R> {
    let asked = async {
        loop {
            if let Ok(answer) = call().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(IN_VAIN, asked).await.ok()
}

/// The ids of all workers that live.
async fn living(scheduler: &Scheduler) -> BTreeSet<u64> {
    let workers = scheduler.status().await.unwrap().workers.into_iter();
    let living = workers.filter(|worker| worker.kind == "worker" && worker.state != "dead");
    living.map(|worker| worker.workerid).collect()
}

async fn tasks(scheduler: &Scheduler) -> Vec<RayTask> {
    scheduler.tasks(RayTasksRequest { limit: 10_000, state: String::new() }).await.unwrap().tasks
}

/// Stores and workers ask different nodes first, so some of them are on the side of the leader that is cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f18_a_leader_in_the_minority_changes_nothing_and_workers_of_both_sides_go_on_without_it() {
    let data = tempfile::tempdir().unwrap();
    let options = ClusterOptions::tripod().unwrap();
    let mut cluster = Cluster::start(ClusterOptions { proxied: true, ..options }).await.unwrap();
    cluster.wait_until_ready().await.unwrap();
    let peers = Peers::start_all(&cluster, data.path()).unwrap();
    let config = Config { host: peers.host(0), ..Config::local(cluster.endpoints()) };
    let driver = until_async("a driver that can begin", || async { Driver::begin(&config).await.ok() }).await;
    let config_of_client = tripod_client::Config { endpoints: cluster.endpoints(), timeout: deadline() };
    let client = tripod_client::Client::new(&config_of_client).unwrap();
    let scheduler = Scheduler::new(client, "", 0, deadline());
    until_async("the workers", || async { (living(&scheduler).await.len() == WORKERS).then_some(()) }).await;
    work(&driver, 0).await;
    let workers = living(&scheduler).await;
    let before: BTreeSet<u64> = tasks(&scheduler).await.iter().map(|task| task.operationid).collect();

    let cut_off = cluster.wait_for_leader().await.unwrap();
    let others: Vec<u64> = cluster.ids().filter(|node| *node != cut_off).collect();
    for other in &others {
        let network = cluster.network().unwrap();
        network.set_flow_between(LinkEnd::Node(cut_off), LinkEnd::Node(*other), Flow::Swallow);
    }
    // Until each worker has been given a second task since, so that it has told the new leader of the end of the first:
    // also those who asked the one that is cut off.
    let all_go_on = Cell::new(false);
    let looks = async {
        let ran = RefCell::new(BTreeMap::<u64, BTreeSet<u64>>::new());
        until_async("workers of both sides to go on", || async {
            for task in tasks(&scheduler).await {
                if let Some(worker) = task.workerid.filter(|_| !before.contains(&task.operationid)) {
                    ran.borrow_mut().entry(worker).or_default().insert(task.operationid);
                }
            }
            let ran = ran.borrow();
            workers.iter().all(|worker| ran.get(worker).is_some_and(|tasks| tasks.len() > 1)).then_some(())
        })
        .await;
        all_go_on.set(true);
    };
    let goes_on = async {
        for round in 1.. {
            work(&driver, round).await;
            if all_go_on.get() {
                break;
            }
        }
    };
    let minority = SchedulerClient::connect(format!("http://{}", cluster.endpoint(cut_off))).await.unwrap();
    let in_vain = async {
        let put = PutObjRequest { workerid: driver.id(), hold: false };
        let put = answered(async || minority.clone().put_obj(put).await);
        let info = answered(async || minority.clone().scheduler_info(SchedulerInfoRequest {}).await);
        let (put, info) = tokio::join!(put, info);
        assert!(put.is_none() && info.is_none(), "{put:?}, {info:?}");
        until_async("an answer to who asks for what may be old", || async {
            let mut stale = Request::new(SchedulerInfoRequest {});
            stale.metadata_mut().insert(metadata::RAY_READ, "stale".parse().unwrap());
            minority.clone().scheduler_info(stale).await.ok()
        })
        .await;
    };
    tokio::join!(looks, goes_on, in_vain);
    assert_eq!(living(&scheduler).await, workers, "nobody was given up");
    let leader = cluster.wait_for_leader().await.unwrap();
    assert_ne!(leader, cut_off);

    cluster.network().unwrap().heal();
    work(&driver, -1).await;
    cluster.wait_until_ready().await.unwrap();
    assert_eq!(living(&scheduler).await, workers);
    let tasks = tasks(&scheduler).await;
    // One that was given back before it began is at a later attempt, and has no history.
    let begun = |attempt: &String| !attempt.ends_with("was never handed over");
    let again: Vec<_> = tasks.iter().filter(|task| task.history.iter().any(begun)).collect();
    assert!(again.is_empty(), "no task was given to two workers: {again:?}");
}
