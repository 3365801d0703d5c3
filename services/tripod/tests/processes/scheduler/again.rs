//! What a task puts that runs again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tripod_wait::{deadline, until_blocking};
use tripod_worker::{Context, Output, Task, Worker, WorkerError};

use super::heard;
use super::site::{Site, one};

const NAME: &str = "test.put";
/// Between two looks of a function that is not to end.
const LOOK: Duration = Duration::from_millis(20);

/// A worker whose function puts a text that is always the same, and one that is this worker's own, which is its result.
/// It ends when it may.
fn worker(
    site: &Site,
    machine: usize,
    own: &'static str,
    may_end: bool,
) -> (JoinHandle<()>, Arc<AtomicUsize>) {
    let put = Arc::<AtomicUsize>::default();
    let noted = Arc::clone(&put);
    let worker = Worker::new(site.config(machine)).full(NAME, 1, move |context: &Context, _| {
        let same = context.put("the same").map_err(|error| error.to_string())?;
        let own = context.put(own).map_err(|error| error.to_string())?;
        // Both are where others find them.
        for object in [&same, &own] {
            context.get::<String>(object).map_err(|error| error.to_string())?;
        }
        noted.fetch_add(1, Ordering::Relaxed);
        if !may_end {
            loop {
                std::thread::sleep(LOOK);
            }
        }
        Ok(vec![Output::Object(own)])
    });
    let run = async move {
        worker.run(std::future::pending()).await.unwrap_or_else(|error: WorkerError| panic!("{error}"));
    };
    (tokio::spawn(run), put)
}

/// Two attempts put different values: others may have read the first one, which stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u27_a_put_that_differs_in_a_second_attempt_is_told_and_the_first_one_stays() {
    heard::listen();
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 2, 0);
    let driver = site.driver(0).await;
    let (first, put) = worker(&site, 0, "first", false);
    let text = one(&driver, Task::of(NAME)).await;
    tokio::task::block_in_place(|| {
        until_blocking("the first attempt", || (put.load(Ordering::Relaxed) == 1).then_some(()));
        until_blocking("the scheduler to know both objects", || {
            let status = site.status();
            let stores = status["stores"].as_array()?;
            (stores.iter().filter_map(|store| store["objects"].as_u64()).sum::<u64>() == 2).then_some(())
        });
    });
    // It is heard no more.
    first.abort();
    // At another store: what was put has to come there first.
    let (_second, _) = worker(&site, 1, "second", true);
    assert_eq!(driver.get_within::<String>(&text, deadline()).await.expect("a text"), "first");
    let told = tokio::task::block_in_place(|| {
        until_blocking("the warning", || {
            let told = heard::lines_with(&[NAME, "another value"]);
            (!told.is_empty()).then_some(told)
        })
    });
    assert_eq!(told.len(), 1, "of what is the same nothing is told: {told:?}");
    assert!(told[0].contains("attempt=2") && told[0].contains("object="), "{told:?}");
}
