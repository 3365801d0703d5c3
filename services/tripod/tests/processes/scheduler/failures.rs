//! Workers, drivers and object stores that die while somebody owes them an answer, and objects that die with them.

use std::path::Path;
use std::process::{Command, Stdio};

use futures::future::join_all;
use serde_json::Value;
use tripod_objstore::ObjectId;
use tripod_objstore::local::Connection;
use tripod_processes::cluster::connections::listening_ports;
use tripod_proto::ray::ObjStoreInfoRequest;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_wait::{deadline, until_blocking};
use tripod_worker::{Blob, Driver, GetError, ObjectRef, Task};

use super::gate::Gate;
use super::site::{Daemon, Site, add, all_decided, number, one};
use crate::support::kill_by;

/// What the program of a driver is told by, and how it begins.
const DRIVER_OF: &str = "SCHEDULER_TEST_DRIVER_OF";
const DRIVER_PROGRAM: &str = "scheduler::failures::program_of_a_driver_that_is_killed";

/// A task that does with the objects what its name says: `tripod.get`, `tripod.wait`.
fn with_ids(name: &str, objects: &[ObjectRef]) -> Task {
    let ids: Vec<_> = objects.iter().map(ObjectRef::id).collect();
    Task::of(name).arg(&ids).expect("ids")
}

fn add_numbers() -> Task {
    let task = Task::of("tripod.add").arg(&1).and_then(|task| task.arg(&2));
    task.expect("numbers")
}

async fn still_works(driver: &Driver) {
    let three = one(driver, add_numbers()).await;
    assert_eq!(number(driver, &three).await, 3);
}

/// Waits until as many tasks of this function run; gives the ports of those who run them.
fn ports_that_run(site: &Site, function: &str, count: usize) -> Vec<u16> {
    until_blocking(format!("{count} running tasks of {function}"), || {
        let tasks = site.tasks();
        let runs = |task: &&Value| task["function"] == function && task["state"] == "running";
        let running = tasks.iter().filter(runs).map(|task| task["worker"].clone()).collect::<Vec<_>>();
        let status = site.status();
        let of_it = |worker: &Value| {
            let known = status["workers"].as_array()?.iter().find(|known| known["id"] == *worker)?;
            known["address"].as_str()?.rsplit(':').next()?.parse().ok()
        };
        (running.len() == count).then(|| running.iter().map(of_it).collect::<Option<_>>())?
    })
}

/// Kills the worker that listens at a port.
fn kill_worker(site: &mut Site, port: u16) {
    let workers = &mut site.machines[0].workers;
    let listens = |worker: &Daemon| listening_ports(worker.pid()).is_ok_and(|ports| ports.contains(&port));
    let place = workers.iter().position(listens).expect("a worker of the first machine");
    drop(workers.remove(place));
}

/// Workers are killed in the middle of a call of their tasks; the tasks are run again, by another worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u28_workers_that_die_in_get_and_in_wait_owe_and_are_owed_nothing() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 3);
    let gate = Gate::at(&site, 0);
    let driver = site.driver(0).await;
    let gated = one(&driver, Gate::task()).await;
    let mut waiting = Vec::new();
    for function in ["tripod.get", "tripod.wait"] {
        waiting.push(one(&driver, with_ids(function, std::slice::from_ref(&gated))).await);
        let port = ports_that_run(&site, function, 1)[0];
        kill_worker(&mut site, port);
    }
    until_blocking("the ends of the workers to be known", || (site.workers_in("dead") == 2).then_some(()));
    gate.open();
    for object in &waiting {
        assert_eq!(number(&driver, object).await, 1, "it is run again");
    }
    still_works(&driver).await;
    drop((gated, waiting));
    site.until_empty();
}

/// A driver that waits until it is killed. Started by the test below as a process of its own.
#[tokio::test]
#[ignore = "a program that a test starts"]
async fn program_of_a_driver_that_is_killed() {
    let Ok(told) = std::env::var(DRIVER_OF) else { return };
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let text = |key: &str| told[key].as_str().expect("a text").to_owned();
    let endpoints = text("endpoints").split(',').map(str::to_owned).collect();
    let config = tripod_worker::Config { host: text("host"), ..tripod_worker::Config::local(endpoints) };
    let driver = Driver::begin(&config).await.expect("a driver");
    let gated = one(&driver, Gate::task()).await;
    let objects = [one(&driver, with_ids("tripod.get", std::slice::from_ref(&gated))).await, gated];
    // Each process is killed in one of the two.
    if told["in"] == "get" {
        let _: i64 = driver.get(&objects[0]).await.expect("a number");
    } else {
        all_decided(&driver, &objects, deadline()).await;
    }
    panic!("it was to be killed before");
}

/// Drivers live beside each other; those that are killed leave nothing behind, and the other one goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u28_drivers_that_die_in_get_and_in_wait_leave_nothing_behind() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 2);
    let gate = Gate::at(&site, 0);
    let other = site.driver(0).await;
    let start = |place: &str| {
        let told = serde_json::json!({
            "endpoints": site.dev.endpoints(1), "host": site.machines[0].host, "in": place
        });
        let program = Command::new(std::env::current_exe().expect("this program"))
            .args([DRIVER_PROGRAM, "--exact", "--ignored"])
            .env(DRIVER_OF, told.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        program.expect("starts")
    };
    let programs = ["get", "wait"].map(start);
    ports_that_run(&site, "tripod.get", 2);
    for mut program in programs {
        kill_by(program.id());
        program.wait().expect("waited");
    }
    gate.open();
    still_works(&other).await;
    site.until_empty();
    assert_eq!(site.status()["objects"]["gets_waiting"], 0, "{:#}", site.status());
    still_works(&other).await;
}

/// A worker wrote a result and died before anybody knew. The next attempt finds the object in the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_an_earlier_attempt_wrote_fails_no_later_one() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 0);
    let gate = Gate::at(&site, 0);
    let driver = site.driver(0).await;
    let gated = one(&driver, Gate::task()).await;
    ports_that_run(&site, Gate::name(), 1);
    let store = site.status()["stores"][0]["address"].as_str().expect("an address").to_owned();
    let mut store = ObjStoreClient::connect(format!("http://{store}")).await.expect("it serves");
    let info = store.obj_store_info(ObjStoreInfoRequest::default()).await.expect("told").into_inner();
    let local = Connection::open(Path::new(&info.local_socket), None).await.expect("connected");
    local.put(ObjectId(gated.id().0), bytes::Bytes::new(), 0, None).await.expect("an Obj without anything");
    gate.open();
    until_blocking("the end of the task", || {
        let task = site.tasks().into_iter().find(|task| task["function"] == Gate::name())?;
        assert_ne!(task["state"], "failed", "{task}");
        (task["state"] == "done").then_some(())
    });
    let again = one(&driver, Gate::task()).await;
    driver.get_within::<()>(&again, deadline()).await.expect("the worker is free again");
}

/// A store's machine dies, with what was only there, and another one comes.
fn replace_last_machine(site: &mut Site) {
    let machine = site.machines.pop().expect("a machine");
    let workers = machine.workers.len();
    drop(machine);
    let another = site.new_machine(workers);
    site.machines.push(another);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u27_objects_of_a_killed_store_are_made_again_along_their_chains() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 2, 2);
    let driver = site.driver(0).await;

    let bytes = |count: u32| Task::of("tripod.bytes").arg(&count).expect("a number");
    let simple = join_all((0..40).map(|place| one(&driver, bytes(100_000 + place)))).await;
    let mut chain = vec![one(&driver, Task::of("tripod.echo").arg(&0).unwrap()).await];
    while chain.len() < 40 {
        let last = chain.last().expect("one");
        chain.push(one(&driver, add(last, 1)).await);
    }
    // Several chains, each of whose links needs the first one, too.
    let mut several = Vec::new();
    for first in 0..4 {
        let first = one(&driver, Task::of("tripod.echo").arg(&first).unwrap()).await;
        let mut last = first.clone();
        for _ in 0..10 {
            last = one(&driver, Task::of("tripod.sum").object(&first).object(&last)).await;
        }
        several.push(last);
    }
    for objects in [&simple, &chain, &several] {
        all_decided(&driver, objects, deadline()).await;
    }
    // What a program put can be made again by nobody.
    let far = site.driver(1).await;
    let put = far.put(&17).await.expect("written");
    let put = driver.adopt(put.id()).await.expect("it is there");
    replace_last_machine(&mut site);
    for (place, object) in simple.iter().enumerate() {
        let blob: Blob = driver.get_within(object, deadline()).await.expect("bytes");
        assert_eq!(blob.0.len(), 100_000 + place);
    }
    for (place, object) in chain.iter().enumerate().rev() {
        assert_eq!(number(&driver, object).await, i64::try_from(place).expect("small"));
    }
    for (first, object) in several.iter().enumerate() {
        assert_eq!(number(&driver, object).await, i64::try_from(first * 11).expect("small"));
    }
    let Err(GetError::Failed(lost)) = driver.get_within::<i64>(&put, deadline()).await else {
        panic!("it is lost")
    };
    assert_eq!(lost.reason, "PUT_OBJECT");
    let rebuilt = site.tasks().iter().filter(|task| task["attempt"] != 1).count();
    assert!(rebuilt > 0, "something was lost");
    drop((simple, chain, several, put, far));
    site.until_empty();
}
