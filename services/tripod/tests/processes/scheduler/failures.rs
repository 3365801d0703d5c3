//! Workers, drivers and object stores that die while somebody owes them an answer, and objects that die with them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tripod_objstore::ObjectId;
use tripod_objstore::local::Connection;
use tripod_proto::ray::ObjStoreInfoRequest;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_worker::{Blob, Driver, GetError, ObjectRef, Task};

use super::site::{Site, add, all_decided, number, one};
use crate::support::{PATIENCE, kill_by, wait_for};

/// How long a task takes that others wait for: also on a busy machine it is seen to run, and those who wait for it.
const SLOW_MS: u64 = 6000;
/// What the program of a driver is told by, and how it begins.
const DRIVER_OF: &str = "SCHEDULER_TEST_DRIVER_OF";
const DRIVER_PROGRAM: &str = "scheduler::failures::program_of_a_driver_that_is_killed";

fn sleep() -> Task {
    Task::of("tripod.sleep").arg(&SLOW_MS).expect("a number")
}

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

/// The place of the machine whose worker runs a task of this function.
fn machine_that_runs(site: &Site, function: &str) -> usize {
    wait_for("a running task", || {
        let tasks = site.tasks();
        let runs = |task: &&Value| task["function"] == function && task["state"] == "running";
        let worker = tasks.iter().find(runs)?["worker"].clone();
        let status = site.status();
        let workers = status["workers"].as_array()?;
        let address = workers.iter().find(|known| known["id"] == worker)?["address"].as_str()?.to_owned();
        site.machines.iter().position(|machine| address.starts_with(&format!("{}:", machine.host)))
    })
}

/// A worker is killed in the middle of a call of its task; the task is run again, by the other worker.
async fn worker_dies_in(function: &str) {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 2, 1);
    let driver = site.driver(0).await;
    let slow = one(&driver, sleep()).await;
    machine_that_runs(&site, "tripod.sleep");
    let waiting = one(&driver, with_ids(function, std::slice::from_ref(&slow))).await;
    let victim = machine_that_runs(&site, function);
    site.machines[victim].workers.clear();
    assert_eq!(number(&driver, &waiting).await, 1, "it is run again");
    still_works(&driver).await;
    wait_for("the end of the worker to be known", || (site.workers_in("dead") == 1).then_some(()));
    drop((slow, waiting));
    site.until_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u28_a_worker_that_dies_in_get_owes_and_is_owed_nothing() {
    worker_dies_in("tripod.get").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u28_a_worker_that_dies_in_wait_owes_and_is_owed_nothing() {
    worker_dies_in("tripod.wait").await;
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
    let slow = one(&driver, sleep()).await;
    let objects = [one(&driver, with_ids("tripod.get", std::slice::from_ref(&slow))).await, slow];
    // Each process is killed in one of the two.
    if told["in"] == "get" {
        let _: i64 = driver.get(&objects[0]).await.expect("a number");
    } else {
        all_decided(&driver, &objects, PATIENCE).await;
    }
    panic!("it was to be killed before");
}

/// Two drivers live beside each other; the one that is killed leaves nothing behind, and the other goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u28_a_driver_that_dies_in_get_or_in_wait_leaves_nothing_behind() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 2);
    let other = site.driver(0).await;
    for place in ["get", "wait"] {
        let told = serde_json::json!({
            "endpoints": site.dev.endpoints(1), "host": site.machines[0].host, "in": place
        });
        let mut program = Command::new(std::env::current_exe().expect("this program"))
            .args([DRIVER_PROGRAM, "--exact", "--ignored"])
            .env(DRIVER_OF, told.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        machine_that_runs(&site, "tripod.get");
        kill_by(program.id());
        program.wait().expect("waited");
        still_works(&other).await;
        site.until_empty();
    }
    assert_eq!(site.status()["objects"]["gets_waiting"], 0, "{:#}", site.status());
    still_works(&other).await;
}

/// A worker wrote a result and died before anybody knew. The next attempt finds the object in the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_an_earlier_attempt_wrote_fails_no_later_one() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 1);
    let driver = site.driver(0).await;
    let slow = one(&driver, sleep()).await;
    machine_that_runs(&site, "tripod.sleep");
    let store = site.status()["stores"][0]["address"].as_str().expect("an address").to_owned();
    let mut store = ObjStoreClient::connect(format!("http://{store}")).await.expect("it serves");
    let info = store.obj_store_info(ObjStoreInfoRequest::default()).await.expect("told").into_inner();
    let local = Connection::open(Path::new(&info.local_socket), None).await.expect("connected");
    local.put(ObjectId(slow.id().0), bytes::Bytes::new(), 0, None).await.expect("an Obj without anything");
    let sum = one(&driver, add_numbers()).await;
    assert_eq!(number(&driver, &sum).await, 3, "the worker is free again");
    wait_for("the end of the task", || {
        let task = site.tasks().into_iter().find(|task| task["function"] == "tripod.sleep")?;
        assert_ne!(task["state"], "failed", "{task}");
        (task["state"] == "done").then_some(())
    });
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
        all_decided(&driver, objects, PATIENCE).await;
    }
    // What a program put can be made again by nobody.
    let far = site.driver(1).await;
    let put = far.put(&17).await.expect("written");
    let put = driver.adopt(put.id()).await.expect("it is there");
    for _ in 0..2 {
        replace_last_machine(&mut site);
        for (place, object) in simple.iter().enumerate() {
            let blob: Blob = driver.get_within(object, PATIENCE).await.expect("bytes");
            assert_eq!(blob.0.len(), 100_000 + place);
        }
        for (place, object) in chain.iter().enumerate().rev() {
            assert_eq!(number(&driver, object).await, i64::try_from(place).expect("small"));
        }
        for (first, object) in several.iter().enumerate() {
            assert_eq!(number(&driver, object).await, i64::try_from(first * 11).expect("small"));
        }
    }
    let Err(GetError::Failed(lost)) = driver.get_within::<i64>(&put, PATIENCE).await else {
        panic!("it is lost")
    };
    assert_eq!(lost.reason, "PUT_OBJECT");
    let rebuilt = site.tasks().iter().filter(|task| task["attempt"] != 1).count();
    assert!(rebuilt > 0, "something was lost");
    drop((simple, chain, several, put, far));
    site.until_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u28_a_store_killed_under_load_costs_no_result() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 2, 2);
    let driver = site.driver(0).await;
    let mut lengths = Vec::new();
    for place in 0..120u32 {
        let bytes = one(&driver, Task::of("tripod.bytes").arg(&(70_000 + place)).unwrap()).await;
        lengths.push(one(&driver, Task::of("tripod.length").object(&bytes)).await);
        if place == 60 {
            tokio::task::block_in_place(|| replace_last_machine(&mut site));
        }
    }
    let deadline = Duration::from_secs(90);
    for (place, length) in lengths.iter().enumerate() {
        let length: usize = driver.get_within(length, deadline).await.expect("a number");
        assert_eq!(length, 70_000 + place);
    }
    drop(lengths);
    site.until_empty();
}
