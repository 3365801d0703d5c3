//! The scheduler with real nodes, object stores and workers, and a driver in this process.

mod again;
mod cancels;
mod dialling;
mod failures;
mod gate;
mod heard;
mod level;
mod linear_algebra;
mod nests;
mod path;
mod ports;
mod reusables;
mod shapes;
mod site;
mod stores;
mod unreachable;

use std::collections::BTreeMap;

use tokio::task::JoinSet;
use tripod_worker::{Config, Driver, GetError, Task, Worker, demo};

use crate::schemas;
use site::{Site, add, number, one};

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

    for command in ["status", "tasks", "graph"] {
        schemas::check(&format!("ray {command}"), &site.dev.json(&["ray", command, "--json"]));
    }
    drop((first, put, last, fibonacci, large, length, failed, panicked, consumer));
    site.until_empty();
    let status = site.status();
    assert_eq!((&status["tasks"]["queued"], &status["tasks"]["running"]), (&0.into(), &0.into()), "{status}");
    drop((driver, far));
    site.dev.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u23_a_driver_comes_to_three_stores_of_five_workers_on_one_host() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 0);
    let host = site.machines[0].host.clone();
    let (second, _) = site.new_store(&host);
    let (third, third_address) = site.new_store(&host);
    let mut workers = JoinSet::new();
    for _ in 0..15 {
        workers.spawn(demo::add_to(Worker::new(site.config(0))).run(std::future::pending()));
    }
    site.until_workers(15);
    let status = site.status();
    let mut of_stores = BTreeMap::new();
    for worker in status["workers"].as_array().expect("a list") {
        *of_stores.entry(worker["store"].as_u64()).or_insert(0) += 1;
    }
    assert!(of_stores.values().eq(&[5, 5, 5]), "{status:#}");

    let config = Config { store: third_address, ..site.config(0) };
    let driver = Driver::begin(&config).await.expect("a driver");
    let mut objects = Vec::new();
    for value in 0..60 {
        objects.push(one(&driver, Task::of("tripod.echo").arg(&value).unwrap()).await);
    }
    let sum = one(&driver, objects.iter().fold(Task::of("tripod.sum"), Task::object)).await;
    assert_eq!(number(&driver, &sum).await, (0..60).sum::<i64>());
    drop((objects, sum));
    site.until_empty();
    drop((second, third));
}
