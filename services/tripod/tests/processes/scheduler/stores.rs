//! What object stores cannot do, and what becomes of those who need it.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tripod_wait::{deadline, until_async, until_blocking};
use tripod_worker::value::from_obj;
use tripod_worker::{Blob, Context, Driver, GetError, ObjectId, Task, Worker};

use super::gate::Gate;
use super::site::{Site, number, one};

const MIB: usize = 1 << 20;

/// Who waits at a small store for a large object is told that it does not fit, and how large the two are; so is a task
/// that needs it and has no other store. Elsewhere the object is as good as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_needs_an_object_at_a_store_that_is_too_small_for_it_is_told_so() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 0);
    let small = site.new_small_machine(1);
    site.machines.push(small);
    let (driver, far) = (site.driver(0).await, site.driver(1).await);
    let large = driver.put(&Blob(vec![7; 3 * MIB])).await.expect("written");
    let told = |text: &str| {
        assert!(text.contains("larger than the store") && text.contains("1048576"), "{text}");
        assert!(text.contains("object 0 "), "the first one: {text}");
    };

    let adopted = far.adopt(large.id()).await.expect("it is there");
    for _ in 0..2 {
        match far.get_within::<Blob>(&adopted, deadline()).await {
            Err(GetError::Store { text, .. }) => told(&text),
            other => panic!("{:?}", other.map(|Blob(bytes)| bytes.len())),
        }
    }

    let site_worker = site.new_worker(&site.machines[1].host.clone());
    site.machines[1].workers.push(site_worker);
    site.until_workers(1);
    let length = one(&driver, Task::of("tripod.length").object(&large)).await;
    match driver.get_within::<usize>(&length, deadline()).await {
        Err(GetError::Failed(error)) => told(&error.text),
        other => panic!("{other:?}"),
    }

    let Blob(bytes) = driver.get_within(&large, deadline()).await.expect("it is here");
    assert_eq!(bytes.len(), 3 * MIB);
    drop((large, adopted, length));
    site.until_empty();
    site.assert_all_alive();
}

/// Nobody knows before a task is begun that its argument is larger than the store; once it is known, the others are done
/// where the argument fits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_whose_argument_is_larger_than_a_workers_store_are_done_at_another_one() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 1);
    let mut small = site.new_small_machine(1);
    small.workers.push(site.new_worker(&small.host));
    site.machines.push(small);
    site.until_workers(2);
    let driver = site.driver(0).await;
    let large = driver.put(&Blob(vec![7; 3 * MIB])).await.expect("written");
    let mut lengths = Vec::new();
    for _ in 0..8 {
        lengths.push(one(&driver, Task::of("tripod.length").object(&large)).await);
    }
    for length in &lengths {
        assert_eq!(driver.get_within::<usize>(length, deadline()).await.expect("its length"), 3 * MIB);
    }
    let attempts: Vec<u64> =
        site.tasks().iter().map(|task| task["attempt"].as_u64().expect("a number")).collect();
    assert!(attempts.iter().all(|attempt| *attempt == 1), "what was given back is no attempt: {attempts:?}");
    drop((large, lengths));
    site.until_empty();
    site.assert_all_alive();
}

/// There is no room as long as others need what is there. Who waits is told after a while, and what is to be done with the
/// object is done elsewhere; when there is room, it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_needs_an_object_at_a_store_that_stays_full_is_told_so_and_has_it_when_there_is_room() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 1);
    let full = ["--capacity-mib", "4", "--spill-mib", "0", "--give-up-after", "3"];
    let full = site.new_machine_with(1, &full);
    site.machines.push(full);
    site.until_workers(2);
    let (driver, far) = (site.driver(0).await, site.driver(1).await);
    let kept = far.put(&Blob(vec![1; 3 * MIB])).await.expect("written");
    let large = driver.put(&Blob(vec![7; 3 * MIB])).await.expect("written");
    let adopted = far.adopt(large.id()).await.expect("it is there");
    match far.get_within::<Blob>(&adopted, deadline()).await {
        Err(error @ GetError::Store { .. }) => {
            let (text, object) = (error.to_string(), format!("object {} ", large.id().0));
            let parts =
                ["answered ResourceExhausted", &object, "3 rounds of 1 s", "no room for 314", "4194304"];
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        other => panic!("{:?}", other.map(|Blob(bytes)| bytes.len())),
    }
    for _ in 0..2 {
        let length = one(&far, Task::of("tripod.length").object(&adopted)).await;
        assert_eq!(far.get_within::<usize>(&length, deadline()).await.expect("its length"), 3 * MIB);
    }
    drop(kept);
    let Blob(bytes) = until_async("room for it", || async {
        match far.get_within(&adopted, deadline()).await {
            Ok(value) => Some(value),
            // It was told a moment ago.
            Err(GetError::Store { text, .. }) if text.contains("no room") => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await;
    assert_eq!(bytes.len(), 3 * MIB);
    drop((large, adopted));
    site.until_empty();
    site.assert_all_alive();
}

/// A function of this name without results, that gets the object whose id is its argument.
fn getter(worker: Worker, begun: &Arc<AtomicUsize>) -> Worker {
    let begun = Arc::clone(begun);
    worker.full("test.get", 0, move |context: &Context, arguments| {
        begun.fetch_add(1, Ordering::Relaxed);
        let id: ObjectId = from_obj(&arguments[0]).map_err(|error| error.to_string())?;
        let object = context.adopt(id).map_err(|error| error.to_string())?;
        context.get::<()>(&object).map_err(|error| error.to_string())?;
        Ok(Vec::new())
    })
}

/// It has no result in whose place an error could be written: what it makes of its store's death would be reported as
/// its own fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_without_results_whose_store_dies_while_it_gets_an_object_is_run_again() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 1);
    let lonely = site.new_machine(0);
    site.machines.push(lonely);
    let driver = site.driver(0).await;
    let (first, second) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    tokio::spawn(getter(Worker::new(site.config(1)), &first).run(pending()));
    let gate = Gate::at(&site, 0);
    let gated = one(&driver, Gate::task()).await;
    submit_get(&driver, gated.id()).await;
    tokio::task::block_in_place(|| {
        until_blocking("the function to begin", || (first.load(Ordering::Relaxed) == 1).then_some(()));
        drop(site.machines.pop());
    });
    tokio::spawn(getter(Worker::new(site.config(0)), &second).run(pending()));
    tokio::task::block_in_place(|| {
        until_blocking("the function to begin again", || (second.load(Ordering::Relaxed) == 1).then_some(()));
        gate.open();
        until_blocking("both tasks' ends", || {
            let tasks = &site.status()["tasks"];
            (tasks["succeeded"] == 2 || tasks["failed"] != 0).then_some(())
        });
    });
    let tasks = &site.status()["tasks"];
    assert_eq!((&tasks["succeeded"], &tasks["failed"]), (&2.into(), &0.into()), "{tasks:#}");
    assert_eq!(second.load(Ordering::Relaxed), 1, "it was run again, elsewhere");
    driver.get_within::<()>(&gated, deadline()).await.expect("it was let through");
    let four = one(&driver, Task::of("tripod.add").arg(&1).unwrap().arg(&3).unwrap()).await;
    assert_eq!(number(&driver, &four).await, 4);
}

async fn submit_get(driver: &Driver, object: ObjectId) {
    let task = Task::of("test.get").arg(&object).expect("an id");
    assert_eq!(driver.submit(&task).await.expect("submitted").len(), 0);
}
