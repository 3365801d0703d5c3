//! Stores and workers of a cluster that has no schedulers yet.

use std::fs;

use tripod_wait::until_blocking;
use tripod_worker::Task;

use super::site::{Site, number, one};
use crate::support::{Dev, reserve_ports};

/// The nodes behave as those of an earlier build do at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_begins_before_the_level_of_schedulers_says_so_and_waits() {
    let data = tempfile::tempdir().expect("a directory");
    let (ports, nodes, log) = (reserve_ports(), data.path().join("nodes"), data.path().join("worker.log"));
    let older = Dev::start(&ports, &nodes, &["--feature-level-max", "2"]);
    let endpoints = older.endpoints(1);
    let mut site = Site::of(older, ports, data.path());
    let machine = site.begin_machine(&log);
    site.machines.push(machine);
    let said = || fs::read_to_string(&log).expect("a log");
    // The leader has to ask the others before it knows which of them holds the level down.
    tokio::task::block_in_place(|| {
        until_blocking("what the worker waits for", || said().contains("supports 2 only").then_some(()));
    });
    let waits = |line: &&str| line.contains("has no schedulers yet") && line.contains("`tripod level unpin`");
    let text = said();
    assert!(text.lines().all(|line| waits(&line) && line.contains("T4401")), "{text}");
    assert!(
        text.lines().count() <= 4,
        "it is said when something else is known, and not again and again: {text}"
    );
    let mut site = site.upgraded(&nodes);
    assert_eq!(site.dev.endpoints(1), endpoints);
    tokio::task::block_in_place(|| site.until_workers(1));
    assert!(site.machines[0].workers[0].runs());
    let driver = site.driver(0).await;
    let three = one(&driver, Task::of("tripod.add").arg(&1).unwrap().arg(&2).unwrap()).await;
    assert_eq!(number(&driver, &three).await, 3);
}
