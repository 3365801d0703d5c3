//! Which task which worker gets, what is brought to it, and what is shown of it.

use bytes::Bytes;
use tripod_state::ray::ids::{StoreId, WorkerId};
use tripod_state::ray::view::{Creator, Kind};
use tripod_state::ray::{Algorithm, Argument, Previous, Request};

use crate::facts::script::{Script, by_reference, name};
use crate::upstream::Sent;

/// Two stores with a driver at the first, and a worker at the second that can do `f` and is not idle yet.
fn apart() -> (Script, WorkerId, WorkerId, [StoreId; 2]) {
    let mut script = Script::new();
    let stores = [script.store(), script.store()];
    let driver = script.driver(stores[0]);
    let worker = script.worker(stores[1], &[("f", 1)]);
    (script, driver, worker, stores)
}

/// The place in the queue of the task that a worker is given when it becomes idle.
fn chosen(script: &mut Script, worker: WorkerId) -> Option<usize> {
    let queue = script.pair.model.queue.clone();
    script.idle(worker);
    let (_, operation) = *script.executed().first()?;
    queue.iter().position(|queued| *queued == operation)
}

#[test]
fn a_task_of_an_unknown_function_consumes_no_id_and_is_no_operation() {
    let (mut script, driver, worker, [store, _]) = apart();
    let x = script.value(driver, store);
    assert_eq!(script.try_submit(driver, "g", &by_reference(&[x])), Err(vec!["FunctionUnknown"]));
    let before = script.pair.model.info();
    script.function(worker, "g", 1);
    let results = script.submit_only(driver, "g", &[]);
    assert_eq!(results[0].0, before.counts.len() as u64);
    assert_eq!(script.pair.model.info().graph.len(), before.graph.len() + 1);
}

#[test]
fn the_task_with_fewer_missing_arguments_goes_first() {
    let (mut script, driver, worker, [there, here]) = apart();
    let remote = [script.value(driver, there), script.value(driver, there)];
    let local = script.value(driver, here);
    script.submit(driver, "f", &by_reference(&remote));
    script.submit(driver, "f", &by_reference(&[local, local, local]));
    assert_eq!(chosen(&mut script, worker), Some(1));
}

/// So it was before locality counted.
#[test]
fn the_naive_scheduler_takes_the_earlier_task_however_much_is_missing() {
    let mut script = Script::with(Algorithm::Naive);
    let [there, here] = [script.store(), script.store()];
    let driver = script.driver(there);
    let worker = script.worker(here, &[("f", 1)]);
    let (remote, local) = (script.value(driver, there), script.value(driver, here));
    script.submit(driver, "f", &by_reference(&[remote]));
    script.submit(driver, "f", &by_reference(&[local]));
    assert_eq!(chosen(&mut script, worker), Some(0));
}

#[test]
fn of_tasks_with_as_many_missing_arguments_the_earlier_goes_first() {
    let (mut script, driver, worker, [there, _]) = apart();
    let remote = [script.value(driver, there), script.value(driver, there)];
    script.submit(driver, "f", &by_reference(&remote[..1]));
    script.submit(driver, "f", &by_reference(&remote[1..]));
    assert_eq!(chosen(&mut script, worker), Some(0));
}

#[test]
fn a_repeated_argument_is_missing_twice() {
    let (mut script, driver, worker, [there, _]) = apart();
    let remote = script.value(driver, there);
    script.submit(driver, "f", &by_reference(&[remote, remote]));
    script.submit(driver, "f", &by_reference(&[remote]));
    assert_eq!(chosen(&mut script, worker), Some(1));
}

/// What is on its way is not there.
#[test]
fn an_argument_on_its_way_is_still_missing() {
    let (mut script, driver, worker, [there, here]) = apart();
    let (coming, local) = (script.value(driver, there), script.value(driver, here));
    script.get(worker, coming);
    script.submit(driver, "f", &by_reference(&[coming]));
    script.submit(driver, "f", &by_reference(&[local]));
    assert_eq!(chosen(&mut script, worker), Some(1));
}

#[test]
fn a_worker_is_given_only_what_it_can_do() {
    let (mut script, driver, worker, [store, _]) = apart();
    let able = script.worker(store, &[("g", 1)]);
    script.submit(driver, "g", &[]);
    script.submit(driver, "f", &[]);
    assert_eq!(chosen(&mut script, worker), Some(1));
    assert_eq!(chosen(&mut script, able), Some(0));
}

/// The list of idle workers is compacted by moving its last one into the gap.
#[test]
fn the_last_idle_worker_takes_the_place_of_the_one_that_got_a_task() {
    let mut script = Script::new();
    let store = script.store();
    let driver = script.driver(store);
    let workers: Vec<_> = (0..4).map(|_| script.worker(store, &[("f", 0)])).collect();
    for worker in &workers {
        script.idle(*worker);
    }
    script.submit(driver, "f", &[]);
    assert_eq!(script.pair.model.idle, [workers[3], workers[1], workers[2]]);
}

#[test]
fn a_missing_argument_is_ordered_once_and_is_held_until_it_is_there() {
    let (mut script, driver, worker, [there, here]) = apart();
    let other = script.worker(here, &[("f", 1)]);
    let x = script.value(driver, there);
    script.idle(worker);
    script.submit(driver, "f", &by_reference(&[x, x]));
    assert!(script.pair.model.stores[here.0 as usize].in_transit == [x]);
    let before = script.counts()[0];
    script.idle(other);
    script.add(&[x]);
    script.submit_only(driver, "f", &by_reference(&[x]));
    assert!(script.sent.iter().all(|sent| !matches!(sent, Sent::Deliver(..))));
    assert_eq!(script.counts()[0], before + 1);
    script.ready(x, here);
    assert_eq!(script.counts()[0], before);
}

#[test]
fn two_gets_of_one_object_at_one_store_are_one_delivery() {
    let (mut script, driver, worker, [there, here]) = apart();
    let x = script.value(driver, there);
    script.get(worker, x);
    assert_eq!(script.sent, [Sent::Deliver(here, x)]);
    script.get(worker, x);
    assert_eq!(script.sent, []);
}

#[test]
fn a_get_at_the_store_that_has_the_object_moves_nothing() {
    let (mut script, driver, _, [there, _]) = apart();
    let x = script.value(driver, there);
    script.get(driver, x);
    assert_eq!(script.sent, []);
    assert_eq!(script.counts(), [1]);
}

#[test]
fn who_says_twice_that_it_is_idle_is_listed_once_and_has_one_task_at_a_time() {
    let (mut script, driver, worker, _) = apart();
    script.idle(worker);
    script.idle(worker);
    assert_eq!(script.pair.model.idle, [worker]);
    script.submit(driver, "f", &[]);
    script.submit(driver, "f", &[]);
    script.idle(worker);
    assert_eq!((script.pair.model.running().len(), script.pair.model.queue.len()), (1, 1));
    script.finish(worker);
    assert_eq!((script.pair.model.running().len(), script.pair.model.queue.len()), (1, 0));
}

#[test]
fn failed_tasks_are_listed_as_they_were_reported_and_running_ones_by_worker() {
    let (mut script, driver, first, [store, _]) = apart();
    let second = script.worker(store, &[("g", 0)]);
    script.submit(driver, "g", &[]);
    script.submit(driver, "f", &[]);
    script.idle(second);
    script.idle(first);
    let running: Vec<_> =
        script.pair.model.task_info().running.into_iter().map(|status| status.name).collect();
    assert_eq!(running, [name("f"), name("g")]);
    for (worker, error) in [(second, "boom"), (first, "bang")] {
        let previous = Some(Previous { succeeded: false, error: Bytes::from_static(error.as_bytes()) });
        script.ask(Request::Idle { worker, previous, run: None }).expect("it lives");
    }
    script.submit(driver, "f", &[]);
    script.finish(first);
    let tasks = script.pair.model.task_info();
    let failed: Vec<_> = tasks.failed.iter().map(|status| (&status.name, &status.error[..])).collect();
    assert_eq!(failed, [(&name("g"), &b"boom"[..]), (&name("f"), &b"bang"[..])]);
    assert_eq!((tasks.running.len(), tasks.succeeded), (0, 1));
}

#[test]
fn every_operation_knows_which_task_made_it() {
    let (mut script, driver, worker, [_, here]) = apart();
    script.idle(worker);
    script.submit(driver, "f", &[]);
    let put = script.put(worker);
    script.submit(worker, "f", &[Argument::Object(put)]);
    script.get(worker, put);
    script.finish(worker);
    script.value(worker, here);
    let graph = script.pair.model.info().graph;
    let task = Creator::Task(graph[0].id);
    let creators: Vec<_> = graph.iter().map(|operation| operation.creator).collect();
    assert_eq!(creators, [Creator::Root, task, task, task, Creator::Nobody]);
    assert!(matches!(graph[3].kind, Kind::Get(object) if object == put));
}
