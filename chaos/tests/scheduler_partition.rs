//! A scheduler with real nodes, object stores and workers, in the middle of which the network is cut.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::time::{Duration, Instant};

use tonic::{Request, Status};
use tripod_chaos::cluster::{Cluster, ClusterOptions, Peers};
use tripod_chaos::proxy::{Flow, Place};
use tripod_client::Scheduler;
use tripod_client::wire::RayTasksRequest;
use tripod_proto::metadata;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::ray::{PutObjRequest, SchedulerInfoRequest};
use tripod_worker::{Config, Driver, ObjectRef, Task};

const PATIENCE: Duration = Duration::from_secs(60);
/// How long the minority is asked in vain.
const IN_VAIN: Duration = Duration::from_secs(3);
/// The cut lasts longer than anybody may be silent after an election.
const CUT: Duration = Duration::from_secs(25);
const WORKERS: usize = 4;

async fn driver(config: &Config) -> Driver {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Driver::begin(config).await {
            Ok(driver) => return driver,
            Err(error) => assert!(Instant::now() < deadline, "no driver can begin: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

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
        assert_eq!(driver.get_within::<i64>(sum, PATIENCE).await.unwrap(), number + round);
    }
    for slept in &slow {
        driver.get_within::<()>(slept, PATIENCE).await.unwrap();
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
async fn living(scheduler: &Scheduler) -> Vec<u64> {
    let workers = scheduler.status().await.unwrap().workers.into_iter();
    let living = workers.filter(|worker| worker.kind == "worker" && worker.state != "dead");
    living.map(|worker| worker.workerid).collect()
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
    let driver = driver(&config).await;
    let client = tripod_client::Client::new(&tripod_client::Config::new(cluster.endpoints())).unwrap();
    let scheduler = Scheduler::new(client, "", 0, PATIENCE);
    let deadline = Instant::now() + PATIENCE;
    while living(&scheduler).await.len() < WORKERS {
        assert!(Instant::now() < deadline, "the workers come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    work(&driver, 0).await;
    let workers = living(&scheduler).await;

    let cut_off = cluster.wait_for_leader().await.unwrap();
    let others: Vec<u64> = cluster.ids().filter(|node| *node != cut_off).collect();
    let began = Instant::now();
    for other in &others {
        let network = cluster.network().unwrap();
        network.set_flow_between(Place::Node(cut_off), Place::Node(*other), Flow::Swallow);
    }
    let mut round = 1;
    let goes_on = async {
        while began.elapsed() < CUT {
            work(&driver, round).await;
            round += 1;
        }
    };
    let minority = SchedulerClient::connect(format!("http://{}", cluster.endpoint(cut_off))).await.unwrap();
    let in_vain = async {
        let put = PutObjRequest { workerid: driver.id(), hold: false };
        let put = answered(async || minority.clone().put_obj(put).await).await;
        assert!(put.is_none(), "{put:?}");
        let info = answered(async || minority.clone().scheduler_info(SchedulerInfoRequest {}).await).await;
        assert!(info.is_none(), "{info:?}");
        let stale = answered(async || {
            let mut stale = Request::new(SchedulerInfoRequest {});
            stale.metadata_mut().insert(metadata::RAY_READ, "stale".parse().unwrap());
            minority.clone().scheduler_info(stale).await
        });
        stale.await.expect("who asks for what may be old is answered");
    };
    tokio::join!(goes_on, in_vain);
    assert!(round > 2, "work was done during the cut");
    assert_eq!(living(&scheduler).await, workers, "nobody was given up");
    let leader = cluster.wait_for_leader().await.unwrap();
    assert_ne!(leader, cut_off);

    cluster.network().unwrap().heal();
    work(&driver, -1).await;
    cluster.wait_until_ready().await.unwrap();
    assert_eq!(living(&scheduler).await, workers);
    let tasks = scheduler.tasks(RayTasksRequest { limit: 10_000, state: String::new() }).await.unwrap().tasks;
    assert!(tasks.len() >= 48, "{} tasks", tasks.len());
    // One that was given back before it began is at a later attempt, and has no history.
    let begun = |attempt: &String| !attempt.ends_with("was never handed over");
    let again: Vec<_> = tasks.iter().filter(|task| task.history.iter().any(begun)).collect();
    assert!(again.is_empty(), "no task was given to two workers: {again:?}");
}
