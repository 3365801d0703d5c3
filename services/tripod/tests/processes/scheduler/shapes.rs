//! The shapes of work that strained the schedulers of 2016: many tasks at once and one at a time, long chains, wide
//! gathers, objects of all sizes. On one machine, and on four while whoever leads is killed in each shape.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tripod_wait::{deadline, until_blocking};
use tripod_worker::value::from_obj;
use tripod_worker::{Blob, Config, Driver, ObjectRef, Output, Task, Worker};

use super::site::{Site, add, all_decided, number, one, was_begun_before};

/// How much of the work that is done step by step, in which every step waits for at least one command.
#[derive(Clone, Copy)]
struct Extent {
    one_by_one: i64,
    chain: usize,
    of_each_size: usize,
}

const WHOLE: Extent = Extent { one_by_one: 200, chain: 300, of_each_size: 10 };
/// Enough to be met by several kills.
const DISTURBED: Extent = Extent { one_by_one: 60, chain: 80, of_each_size: 2 };

/// Does the work, and kills whoever leads whenever the work says so. Answers also how often that was.
async fn while_leaders_are_killed<T: Send + 'static>(
    site: &mut Site,
    mut marks: mpsc::UnboundedReceiver<()>,
    work: impl Future<Output = T> + Send + 'static,
) -> (T, u32) {
    let mut work = tokio::spawn(work);
    let mut killed = 0;
    loop {
        tokio::select! {
            done = &mut work => return (done.expect("the work is done"), killed),
            Some(()) = marks.recv() => {
                tokio::task::block_in_place(|| site.dev.kill_leader());
                killed += 1;
            }
        }
    }
}

fn echo(value: i64) -> Task {
    Task::of("tripod.echo").arg(&value).expect("a number")
}

/// So many tasks at once, and so often, each time when the last ones are done.
async fn rounds(driver: &Driver, rounds: i64, tasks: i64) -> Vec<ObjectRef> {
    let mut all = Vec::new();
    for round in 0..rounds {
        let first = round * tasks;
        let objects = join_all((first..first + tasks).map(|value| one(driver, echo(value)))).await;
        let values = join_all(objects.iter().map(|object| number(driver, object))).await;
        assert!(values.into_iter().eq(first..first + tasks), "round {round} of {tasks} tasks");
        all.extend(objects);
    }
    all
}

/// A thousand tasks in four shapes.
async fn thousands(driver: &Driver, extent: Extent, mark: impl Fn()) -> Vec<ObjectRef> {
    let mut all = Vec::new();
    for (times, tasks) in [(1, 1000), (10, 100), (100.min(extent.one_by_one), 10), (extent.one_by_one, 1)] {
        mark();
        all.extend(rounds(driver, times, tasks).await);
    }
    all
}

/// A long chain of tasks, and tasks that gather up to two hundred others.
async fn dependencies(driver: &Driver, extent: Extent, mark: impl Fn()) -> Vec<ObjectRef> {
    mark();
    let mut all = vec![one(driver, echo(1)).await];
    while all.len() < extent.chain {
        let last = all.last().expect("one");
        all.push(one(driver, add(last, 1)).await);
    }
    mark();
    // Each is its own place, and every other one is what is missing to the sum of all before it.
    let mut gathered = vec![one(driver, echo(0)).await];
    while gathered.len() < 200 {
        let place = i64::try_from(gathered.len()).expect("small");
        let sum = gathered.iter().fold(Task::of("tripod.sum"), Task::object);
        let missing = place - (0..place).sum::<i64>();
        gathered.push(one(driver, sum.arg(&missing).expect("a number")).await);
        gathered.push(one(driver, echo(place + 1)).await);
    }
    let length = i64::try_from(extent.chain).expect("small");
    assert_eq!(number(driver, all.last().expect("one")).await, length);
    let values = join_all(gathered.iter().map(|object| number(driver, object))).await;
    assert!(values.iter().copied().eq(0..201), "{values:?}");
    all.extend(gathered);
    all
}

/// Each of a hundred objects is waited for, and all of them for one more each time.
async fn waits(driver: &Driver) -> Vec<ObjectRef> {
    let objects = join_all((0..100).map(|value| one(driver, echo(value)))).await;
    for object in &objects {
        all_decided(driver, std::slice::from_ref(object), deadline()).await;
    }
    for count in 1..objects.len() {
        let decided = driver.wait(&objects, count, deadline()).await.expect("an answer");
        assert!(decided.iter().filter(|decided| **decided).count() >= count);
    }
    objects
}

/// Puts and gets of each size.
async fn sizes(driver: &Driver, extent: Extent) {
    for digits in 0..8 {
        let blob = Blob((0..10usize.pow(digits)).map(|place| place.to_le_bytes()[0]).collect());
        let mut last = None;
        for _ in 0..extent.of_each_size {
            last = Some(driver.put(&blob).await.expect("written"));
        }
        let last = last.expect("one");
        for _ in 0..extent.of_each_size {
            let got: Blob = driver.get_within(&last, deadline()).await.expect("bytes");
            assert!(got == blob, "{got:?}");
        }
    }
}

/// Every shape, each of which is marked when it begins. Answers with the results of all tasks, so that they are
/// remembered.
async fn every_shape(driver: Arc<Driver>, extent: Extent, mark: impl Fn()) -> Vec<ObjectRef> {
    let mut all = thousands(&driver, extent, &mark).await;
    all.extend(dependencies(&driver, extent, &mark).await);
    mark();
    all.extend(waits(&driver).await);
    sizes(&driver, extent).await;
    all
}

/// Every task is done, none has failed before, and everybody lives. (A task that was given back before it began is at
/// a later attempt.)
fn assert_nothing_happened(site: &mut Site, tasks: usize) {
    site.assert_all_alive();
    let known = until_blocking("the ends of all tasks to be told", || {
        let known = site.tasks();
        let over = |task: &Value| ["done", "failed"].iter().any(|state| task["state"] == *state);
        known.iter().all(over).then_some(known)
    });
    assert_eq!(known.len(), tasks);
    let has_failed = |task: &&Value| task["state"] != "done" || was_begun_before(task);
    let failed: Vec<_> = known.iter().filter(has_failed).collect();
    assert!(failed.is_empty(), "every worker is healthy: {failed:?}");
}

/// A worker of this process, that counts what it executes.
fn counting(config: Config, executed: &Arc<AtomicUsize>) -> Worker {
    let [one, two, three] = [(); 3].map(|()| Arc::clone(executed));
    let count = |executed: &AtomicUsize| executed.fetch_add(1, Ordering::Relaxed);
    Worker::new(config)
        .function("tripod.echo", move |number: i64| {
            count(&one);
            number
        })
        .function("tripod.add", move |left: i64, right: i64| {
            count(&two);
            left + right
        })
        .full("tripod.sum", 1, move |_, numbers| {
            count(&three);
            let sum = numbers.iter().map(from_obj::<i64>).sum::<Result<i64, _>>();
            Ok(vec![Output::of(&sum.map_err(|error| error.to_string())?)?])
        })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u26_work_of_every_shape_on_one_machine() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 4);
    let driver = Arc::new(site.driver(0).await);
    let objects = every_shape(Arc::clone(&driver), WHOLE, || ()).await;
    assert_nothing_happened(&mut site, objects.len());
    drop(objects);
    site.until_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u26_work_of_every_shape_on_four_machines_while_leaders_are_killed() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 4, 0);
    let (mut workers, executed) = (JoinSet::new(), Arc::default());
    for place in 0..8 {
        workers.spawn(counting(site.config(place % 4), &executed).run(pending()));
    }
    site.until_workers(8);
    let driver = Arc::new(site.driver(0).await);
    let (mark, marks) = mpsc::unbounded_channel();
    let work = every_shape(Arc::clone(&driver), DISTURBED, move || mark.send(()).expect("the test goes on"));
    let (objects, killed) = while_leaders_are_killed(&mut site, marks, work).await;
    assert!(killed > 2, "{killed} leaders were killed");
    assert_nothing_happened(&mut site, objects.len());
    assert_eq!(executed.load(Ordering::Relaxed), objects.len(), "no task is executed twice");
    assert!(workers.try_join_next().is_none(), "every worker lives");
    drop(objects);
    site.until_empty();
}
