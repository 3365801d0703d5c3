//! Tasks that submit tasks and wait for them, more than all workers have slots.

use tripod_worker::Task;

use super::site::{Site, number, one};

/// Workers that may have two tasks at a time each.
const WORKERS: usize = 2;
const SLOTS: &str = "2";

fn nest(deep: u32) -> Task {
    Task::of("tripod.nest").arg(&deep).expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nest_deeper_than_all_slots_ends_and_so_do_many_beside_each_other() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 0);
    let host = site.machines[0].host.clone();
    for _ in 0..WORKERS {
        let worker = site.new_worker_with(&host, &["--slots", SLOTS]);
        site.machines[0].workers.push(worker);
    }
    site.until_workers(WORKERS);
    let driver = site.driver(0).await;
    let deep = one(&driver, nest(30)).await;
    assert_eq!(number(&driver, &deep).await, 30);
    let mut wide = Vec::new();
    for _ in 0..20 {
        wide.push(one(&driver, nest(3)).await);
    }
    for task in &wide {
        assert_eq!(number(&driver, task).await, 3);
    }
    drop((deep, wide));
    site.until_empty();
    site.assert_all_alive();
    drop(driver);
    site.dev.end();
}
