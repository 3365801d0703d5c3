//! U16 and U20 with workers and drivers in Rust: variables that workers make once and tasks use.

use std::future::pending;
use std::sync::{Mutex, mpsc};

use serde::Serialize;
use tokio::task::JoinSet;
use tripod_client::{Client, Scheduler};
use tripod_proto::ray::{ExportReusableVariableRequest, Function, ReusableVar};
use tripod_wait::{deadline, until_blocking};
use tripod_worker::{Context, Driver, GetError, Output, Reusable, Task, Worker, demo};

use super::site::{Site, number, one};

type Outcome = Result<Vec<Output>, String>;

/// Changes a list, and gives it as it is then.
fn push(context: &Context, name: &str) -> Outcome {
    let mut list = context.reusable::<Vec<i64>>(name).map_err(|error| error.to_string())?;
    list.push(7);
    Ok(vec![Output::of(&*list)?])
}

/// A number as the task finds it.
fn find(context: &Context, name: &str) -> Outcome {
    let found = context.reusable::<i64>(name).map_err(|error| error.to_string())?;
    Ok(vec![Output::of(&*found)?])
}

/// Uses a variable, and has another task use it before this one ends.
fn outer(context: &Context) -> Outcome {
    let told = |error: &dyn std::error::Error| error.to_string();
    let mut list = context.reusable::<Vec<i64>>("list").map_err(|error| told(&error))?;
    list.push(1);
    let inner = context.submit(&Task::of("push.list")).map_err(|error| told(&error))?;
    let inner = context.get::<Vec<i64>>(&inner[0]).map_err(|error| told(&error))?;
    Ok(vec![Output::of(&(&*list, inner))?])
}

/// Workers of this process, each with the same variables.
#[derive(Default)]
struct Workers(JoinSet<()>);

impl Workers {
    fn start(&mut self, site: &Site) {
        let unmade = || Err::<i64, _>("cannot be made");
        let worker = Worker::new(site.config(0))
            .reusable("list", Reusable::<Vec<i64>>::exported())
            .reusable("counter", Reusable::<i64>::exported().renewed_by(|counter| *counter += 1))
            .reusable("own", Reusable::made_by(|| vec![0_i64]))
            .reusable("unmade", Reusable::try_made_by(unmade))
            .reusable("panics", Reusable::<i64>::made_by(|| panic!("on purpose")))
            .full("push.list", 1, |context, _| push(context, "list"))
            .full("push.own", 1, |context, _| push(context, "own"))
            .full("find.counter", 1, |context, _| find(context, "counter"))
            .full("find.unmade", 1, |context, _| find(context, "unmade"))
            .full("find.panics", 1, |context, _| find(context, "panics"))
            .full("find.undeclared", 1, |context, _| find(context, "undeclared"))
            .full("outer", 1, |context, _| outer(context));
        self.0.spawn(async move {
            // It ends with the test.
            let _ = worker.run(pending()).await;
        });
    }
}

async fn list(driver: &Driver, function: &str) -> Vec<i64> {
    let object = one(driver, Task::of(function)).await;
    driver.get_within(&object, deadline()).await.expect("a list")
}

async fn count(driver: &Driver) -> i64 {
    number(driver, &one(driver, Task::of("find.counter")).await).await
}

/// Why a task failed.
async fn failure(driver: &Driver, function: &str) -> String {
    let object = one(driver, Task::of(function)).await;
    match driver.get_within::<i64>(&object, deadline()).await {
        Err(GetError::Failed(error)) => error.text,
        other => panic!("{other:?}"),
    }
}

async fn export<T: Serialize + ?Sized>(driver: &Driver, name: &str, value: &T) {
    driver.export(name, value).await.expect("exported");
}

/// A variable as drivers in Python export it.
async fn export_from_python(site: &Site, name: &str) {
    let client = Client::new(&tripod_client::Config::new(site.config(0).endpoints)).expect("a client");
    let initializer = Some(Function { implementation: b"TPV1 what only Python reads".as_slice().into() });
    let variable = ReusableVar { name: name.as_bytes().to_vec().into(), initializer, reinitializer: None };
    let message = ExportReusableVariableRequest { reusable_variable: Some(variable) };
    let scheduler = Scheduler::new(client, "", rand::random(), deadline());
    scheduler.export_variable(message).await.expect("exported");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u16_no_task_sees_what_another_one_did_to_a_variable() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 1, 0);
    let driver = site.driver(0).await;
    // One was exported before the worker came, and again; the other one comes later.
    export(&driver, "list", &[0]).await;
    export(&driver, "list", &[0, 1]).await;
    let mut workers = Workers::default();
    workers.start(&site);
    site.until_workers(1);
    for _ in 0..3 {
        assert_eq!(list(&driver, "push.list").await, [0, 1, 7]);
        assert_eq!(list(&driver, "push.own").await, [0, 7]);
    }
    export(&driver, "counter", &0).await;
    for expected in 0..3 {
        assert_eq!(count(&driver).await, expected);
    }
    list(&driver, "push.own").await;
    assert_eq!(count(&driver).await, 3, "a task that does not use it changes nothing");

    // Many at a time: each begins after the variables of the one before it are renewed. What is given back meanwhile may
    // come in another order.
    let mut objects = Vec::new();
    for _ in 0..50 {
        objects.push(one(&driver, Task::of("find.counter")).await);
    }
    let mut found = Vec::new();
    for object in &objects {
        found.push(number(&driver, object).await);
    }
    found.sort_unstable();
    assert_eq!(found, (4..54).collect::<Vec<i64>>());

    let outer = one(&driver, Task::of("outer")).await;
    let both: (Vec<i64>, Vec<i64>) = driver.get_within(&outer, deadline()).await.expect("two lists");
    assert_eq!(both, (vec![0, 1, 1], vec![0, 1, 7]), "while a task waits another one has its own");

    export(&driver, "counter", &100).await;
    assert_eq!([count(&driver).await, count(&driver).await], [100, 101], "the last one counts");
    export_from_python(&site, "counter").await;
    assert_eq!(count(&driver).await, 102, "another language's variables are left to its workers");

    // A worker that comes when the leader has died is sent all of it by the next one.
    site.dev.kill_leader();
    drop(workers);
    let mut workers = Workers::default();
    workers.start(&site);
    assert_eq!(list(&driver, "push.list").await, [0, 1, 7]);
    assert_eq!([count(&driver).await, count(&driver).await], [100, 101]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_a_variable_that_cannot_be_made_fails_the_tasks_that_use_it_and_no_worker() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 0);
    let driver = site.driver(0).await;
    let mut workers = Workers::default();
    workers.start(&site);
    site.until_workers(1);
    for _ in 0..2 {
        let told = failure(&driver, "find.unmade").await;
        assert_eq!(told, "reusable variable `unmade` could not be made: cannot be made");
        let told = failure(&driver, "find.panics").await;
        assert_eq!(told, "reusable variable `panics` could not be made: panicked: on purpose");
        let told = failure(&driver, "find.counter").await;
        assert_eq!(told, "reusable variable `counter` could not be made: no driver has exported it yet");
        let told = failure(&driver, "find.undeclared").await;
        assert!(told.contains("no reusable variable `undeclared`"), "{told}");
    }
    export(&driver, "counter", "no number").await;
    let told = failure(&driver, "find.counter").await;
    assert!(told.contains("`counter` could not be made") && told.contains("no number"), "{told}");
    export(&driver, "counter", &5).await;
    assert_eq!(count(&driver).await, 5);
    let status = site.status();
    assert_eq!(status["workers"].as_array().map(Vec::len), Some(2), "the worker and the driver: {status:#}");
}

/// Its variables may take long: until they are made, others run the tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_still_makes_its_variables_is_given_no_task() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 1);
    let driver = site.driver(0).await;
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = Reusable::made_by(move || gate.lock().expect("one thread makes it").recv().is_err());
    let worker = demo::add_to(Worker::new(site.config(0))).reusable("slow", slow);
    let worker = tokio::spawn(worker.run(pending()));
    let known = || site.status()["workers"].as_array().is_some_and(|peers| peers.len() == 3);
    until_blocking("the driver and both workers", || known().then_some(()));
    for value in 0..20 {
        let echo = one(&driver, Task::of("tripod.echo").arg(&value).unwrap()).await;
        assert_eq!(number(&driver, &echo).await, value);
    }
    // The end of the last task may come after its result.
    site.until_workers(1);
    drop(open);
    site.until_workers(2);
    worker.abort();
}
