//! Which task which worker gets, and what is brought to it.

use bytes::Bytes;
use tripod_state::ray::ids::{StoreId, WorkerId};
use tripod_state::ray::{Algorithm, Argument};

use crate::facts::script::{Script, by_reference};

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
fn a_get_at_the_store_that_has_the_object_moves_nothing() {
    let (mut script, driver, _, [there, _]) = apart();
    let x = script.value(driver, there);
    script.get(driver, x);
    assert_eq!(script.sent, []);
    assert_eq!(script.counts(), [1]);
}

/// A task does not wait for what is inside of a value, and keeps it alive until its worker has it.
#[test]
fn a_nested_id_is_held_and_not_waited_for() {
    let (mut script, driver, worker, _) = apart();
    script.idle(worker);
    let object = script.put(driver);
    script.add(&[object]);
    let nested = Argument::Value { bytes: Bytes::from_static(b"[]"), nested: vec![object, object] };
    script.add(&[object, object]);
    script.submit_only(driver, "f", &[nested]);
    assert_eq!(script.executed().len(), 1);
    assert_eq!(script.counts(), [4, 3]);
}
