//! The scheduler with real nodes, object stores and workers, and a driver in this process.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use tripod_chaos::cluster::ReservedPorts;
use tripod_worker::{Config, Driver, GetError, ObjectRef, Task};

use crate::support::{Dev, PATIENCE, kill_by, reserve_ports, stderr, tripod, wait_for};

/// The scheduler's level is not released yet.
const LEVEL: &[&str] = &["--feature-level-max=3", "--restart"];

/// A store or a worker.
struct Daemon(Child);

impl Daemon {
    fn start(command: &str, endpoints: &str, flags: &[&str]) -> Self {
        let process = tripod()
            .args([command, "--exit-with-parent", "--endpoints", endpoints])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        Self(process)
    }

    /// The line that a store prints when it serves.
    fn said(&mut self) -> Value {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("readable");
        serde_json::from_str(&line).expect("one line of JSON")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            kill_by(self.0.id());
            // There is nobody to tell when even this fails.
            let _ = self.0.wait();
        }
    }
}

/// Nodes, and machines of one store and some workers each. Every machine has an address of its own.
struct Site {
    dev: Dev,
    machines: Vec<Machine>,
    _ports: ReservedPorts,
}

struct Machine {
    host: String,
    store: Daemon,
    workers: Vec<Daemon>,
}

impl Site {
    fn start(data: &Path, machines: usize, workers: usize) -> Self {
        let ports = reserve_ports();
        let dev = Dev::start(&ports, &data.join("nodes"), LEVEL);
        let endpoints = dev.endpoints(1);
        let machine = |place: usize| {
            let host = host_of(&ports, place);
            let folder = data.join(format!("store-{place}"));
            let (listen, folder) = (format!("{host}:0"), folder.display().to_string());
            let flags = ["--json", "--listen", &listen, "--directory", &folder];
            let mut store = Daemon::start("objstore", &endpoints, &flags);
            store.said();
            let worker = |_| Daemon::start("worker", &endpoints, &["--host", &host]);
            let workers = (0..workers).map(worker).collect();
            Machine { host: host.clone(), store, workers }
        };
        let machines: Vec<_> = (0..machines).map(machine).collect();
        let site = Self { dev, machines, _ports: ports };
        site.until_workers(site.machines.iter().map(|machine| machine.workers.len()).sum());
        site
    }

    fn until_workers(&self, wanted: usize) {
        wait_for("idle workers", || {
            let status = self.status();
            let idle =
                status["workers"].as_array()?.iter().filter(|worker| worker["state"] == "idle").count();
            (idle == wanted).then_some(())
        });
    }

    fn status(&self) -> Value {
        self.dev.json(&["ray", "status", "--json"])
    }

    async fn driver(&self, machine: usize) -> Driver {
        let endpoints = self.dev.endpoints(2).split(',').map(str::to_owned).collect();
        let config = Config { host: self.machines[machine].host.clone(), ..Config::local(endpoints) };
        Driver::begin(&config).await.expect("a driver")
    }

    /// Waits until nothing refers to anything any more.
    fn until_empty(&self) {
        wait_for("that every object is gone", || (self.status()["objects"]["live"] == 0).then_some(()));
    }
}

/// An address of the loopback network that no other test uses: workers listen at ports that the scheduler chooses.
fn host_of(ports: &ReservedPorts, place: usize) -> String {
    let [high, low] = ports.first().to_be_bytes();
    let place = u8::try_from(place + 1).expect("few machines");
    Ipv4Addr::new(127, 100 + place, high, low.max(1)).to_string()
}

async fn one(driver: &Driver, task: Task) -> ObjectRef {
    let mut results = driver.submit(&task).await.expect("submitted");
    assert_eq!(results.len(), 1);
    results.pop().expect("a result")
}

async fn number(driver: &Driver, object: &ObjectRef) -> i64 {
    driver.get_within(object, PATIENCE).await.expect("a number")
}

fn add(left: &ObjectRef, right: i64) -> Task {
    Task::of("tripod.add").object(left).arg(&right).expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_run_and_their_results_are_read() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 2, 2);
    let driver = site.driver(0).await;

    let first = one(&driver, Task::of("tripod.add").arg(&1).unwrap().arg(&2).unwrap()).await;
    assert_eq!(number(&driver, &first).await, 3);
    let put = driver.put(&39).await.expect("written");
    assert_eq!(number(&driver, &one(&driver, add(&put, 3)).await).await, 42);

    let mut last = first.clone();
    for _ in 0..50 {
        last = one(&driver, add(&last, 1)).await;
    }
    assert_eq!(number(&driver, &last).await, 53, "a chain of tasks");

    let fibonacci = one(&driver, Task::of("tripod.fibonacci").arg(&10).unwrap()).await;
    assert_eq!(
        number(&driver, &fibonacci).await,
        55,
        "tasks that submit tasks, and give their results as their own"
    );

    let far = site.driver(1).await;
    let large = one(&driver, Task::of("tripod.bytes").arg(&(8 << 20)).unwrap()).await;
    let length = one(&far, Task::of("tripod.length").object(&far.adopt(large.id()).await.unwrap())).await;
    assert_eq!(number(&far, &length).await, 8 << 20, "between stores, through shared memory");

    let failed = one(&driver, Task::of("tripod.fail").arg("on purpose").unwrap()).await;
    let Err(GetError::Failed(error)) = driver.get::<()>(&failed).await else { panic!("it failed") };
    assert_eq!((&*error.function, &*error.text), ("tripod.fail", "on purpose"));
    let panicked = one(&driver, Task::of("tripod.panic").arg("on purpose").unwrap()).await;
    let consumer = one(&driver, Task::of("tripod.echo").object(&panicked)).await;
    let Err(GetError::Failed(error)) = driver.get::<i64>(&consumer).await else { panic!("it failed") };
    let told = "argument 0 of function tripod.echo was produced by failed tripod.panic: panicked: on purpose";
    assert_eq!(error.text, told);

    let unknown =
        tokio::time::timeout(Duration::from_secs(1), driver.submit(&Task::of("nobody.knows"))).await;
    assert!(unknown.is_err(), "it waits for a worker that has the function");

    drop((first, put, last, fibonacci, large, length, failed, panicked, consumer));
    site.until_empty();
    let status = site.status();
    assert_eq!((&status["tasks"]["queued"], &status["tasks"]["running"]), (&0.into(), &0.into()), "{status}");
    drop((driver, far));
    site.dev.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_is_lost_or_run_again_when_leaders_are_killed() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 2);
    let driver = site.driver(0).await;
    let mut sums = Vec::new();
    for round in 0..3 {
        let mut objects = Vec::new();
        for number in 0..100 {
            let task = Task::of("tripod.add").arg(&number).unwrap().arg(&round).unwrap();
            objects.push(one(&driver, task).await);
            if number == 50 {
                site.dev.kill_leader();
            }
        }
        let sum = objects.iter().fold(Task::of("tripod.sum"), Task::object);
        sums.push(one(&driver, sum).await);
    }
    for (round, sum) in sums.iter().enumerate() {
        let round = i64::try_from(round).expect("small");
        assert_eq!(number(&driver, sum).await, (0..100).sum::<i64>() + 100 * round);
    }
    let tasks = site.dev.json(&["ray", "tasks", "--limit", "1000", "--json"]);
    let again: Vec<_> = tasks.as_array().unwrap().iter().filter(|task| task["attempt"] != 1).collect();
    assert!(again.is_empty(), "every worker is healthy: {again:?}");
    drop(sums);
    site.until_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_ran_is_run_by_another_and_what_a_killed_store_held_is_made_again() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 2, 1);
    let driver = site.driver(0).await;
    let slow = one(&driver, Task::of("tripod.sleep").arg(&500).unwrap()).await;
    let kept = one(&driver, Task::of("tripod.bytes").arg(&(1 << 20)).unwrap()).await;
    let machine = site.machines.pop().expect("two machines");
    let Machine { store, workers, .. } = machine;
    drop(workers);
    driver.get_within::<()>(&slow, PATIENCE).await.expect("it runs elsewhere");
    drop(store);
    let length = one(&driver, Task::of("tripod.length").object(&kept)).await;
    assert_eq!(number(&driver, &length).await, 1 << 20);
    let refused = site.dev.run(&["ray", "status", "--json"]);
    assert!(refused.status.success(), "{}", stderr(&refused));
}
