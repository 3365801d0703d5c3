//! Tasks that are cancelled while a process runs them.

use std::time::Duration;

use tripod_wait::until_blocking;
use tripod_worker::{GetError, Task};

use super::site::{Site, one};

/// Longer than any test.
const FOR_EVER_MS: u64 = 3_600_000;

fn cancelled(got: Result<(), GetError>) -> bool {
    matches!(got, Err(GetError::Failed(error)) if error.reason == "CANCELLED")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_listens_ends_and_a_process_that_does_not_is_gone() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 1);
    let driver = site.driver(0).await;
    let listens = one(&driver, Task::of("tripod.sleep").arg(&FOR_EVER_MS).expect("a number")).await;
    let running =
        |name: &str| site.tasks().iter().any(|task| task["function"] == name && task["state"] == "running");
    tokio::task::block_in_place(|| {
        until_blocking("it runs", || running("tripod.sleep").then_some(()));
    });
    assert!(driver.cancel(&listens, Duration::from_secs(300)).await.expect("answered"));
    assert!(cancelled(driver.get(&listens).await));
    assert!(!driver.cancel(&listens, Duration::ZERO).await.expect("answered"), "it is over");
    let deaf = one(&driver, Task::of("tripod.sleep-on").arg(&FOR_EVER_MS).expect("a number")).await;
    tokio::task::block_in_place(|| {
        until_blocking("it runs", || running("tripod.sleep-on").then_some(()));
    });
    assert!(driver.cancel(&deaf, Duration::from_millis(100)).await.expect("answered"));
    assert!(cancelled(driver.get(&deaf).await));
    tokio::task::block_in_place(|| {
        until_blocking("its process ends", || (!site.machines[0].workers[0].runs()).then_some(()));
    });
    drop((listens, deaf, driver));
    site.dev.end();
}
