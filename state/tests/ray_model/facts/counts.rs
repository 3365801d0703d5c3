//! How many references there are, call by call.

use tripod_state::ray::Argument;
use tripod_state::ray::ids::{ObjectId, WorkerId};

use crate::facts::script::{Script, by_reference};
use crate::upstream::Sent;

/// One store, a driver and a worker that waits, which can do a function without arguments.
fn small(functions: &[(&str, u64)]) -> (Script, WorkerId, WorkerId) {
    let mut script = Script::new();
    let store = script.store();
    let driver = script.driver(store);
    let worker = script.worker(store, functions);
    script.idle(worker);
    (script, driver, worker)
}

#[test]
fn a_result_has_three_references_at_first_one_with_a_handle_alone_and_is_deallocated_with_it() {
    let (mut script, driver, worker) = small(&[("f", 1)]);
    let results = script.submit_only(driver, "f", &[]);
    assert_eq!(script.counts(), [3]);
    script.add(&results);
    script.drop(&results);
    script.unpack(&results);
    script.ready(results[0], script.pair.model.worker(worker).store);
    script.finish(worker);
    assert_eq!(script.counts(), [1]);
    script.drop(&results);
    assert_eq!(script.counts(), [-1]);
    assert_eq!(script.sent, [Sent::Deallocate(script.pair.model.worker(worker).store, results[0])]);
}

#[test]
fn results_are_counted_one_by_one_and_ids_follow_each_other() {
    let (mut script, driver, worker) = small(&[("none", 0), ("three", 3)]);
    assert_eq!(script.submit_only(driver, "none", &[]), []);
    assert_eq!(script.counts(), []);
    script.finish(worker);
    assert_eq!(script.submit_only(driver, "three", &[]), [ObjectId(0), ObjectId(1), ObjectId(2)]);
    assert_eq!(script.counts(), [3, 3, 3]);
}

/// `h` calls `g`, which calls `f`: two ids that mean a third.
#[test]
fn a_chain_of_aliases_is_counted_at_its_begin_and_goes_as_a_whole() {
    let mut script = Script::new();
    let store = script.store();
    let driver = script.driver(store);
    let functions = [("f", 1), ("g", 1), ("h", 1)];
    let workers: Vec<_> = (0..3).map(|_| script.worker(store, &functions)).collect();
    for worker in &workers {
        script.idle(*worker);
    }
    let h = script.submit(driver, "h", &[]);
    let [(in_h, _)] = script.pair.model.running()[..] else { panic!("h runs") };
    script.unpack(&h);
    let g = script.submit(in_h, "g", &[]);
    script.alias(h[0], g[0]);
    script.drop(&g);
    script.finish(in_h);
    let [(in_g, _)] = script.pair.model.running()[..] else { panic!("g runs") };
    script.unpack(&g);
    let f = script.submit(in_g, "f", &[]);
    script.alias(g[0], f[0]);
    script.drop(&f);
    script.finish(in_g);
    let [(in_f, _)] = script.pair.model.running()[..] else { panic!("f runs") };
    script.unpack(&f);
    script.ready(f[0], store);
    script.finish(in_f);
    assert_eq!(script.counts(), [1, 0, 0]);
    script.drop(&h);
    assert_eq!(script.counts(), [-1, -1, -1]);
    assert_eq!(script.sent, [Sent::Deallocate(store, f[0])]);
}

/// A matrix of 1 x 2 blocks is an object that contains the ids of its blocks.
#[test]
fn an_array_of_two_blocks_is_three_objects_that_go_together() {
    let (mut script, driver, worker) = small(&[]);
    let store = script.pair.model.worker(worker).store;
    let blocks = [script.value(driver, store), script.value(driver, store)];
    let array = script.value(driver, store);
    script.contain(array, &blocks);
    script.drop(&blocks);
    assert_eq!(script.counts(), [1, 1, 1]);
    script.drop(&[array]);
    assert_eq!(script.counts(), [-1, -1, -1]);
    assert_eq!(script.sent.len(), 3);
}

/// The counts of `dot(x, y)` fall one by one as the handles go, and the arguments live as long as the task needs them.
#[test]
fn the_counts_of_a_product_fall_one_by_one() {
    let (mut script, driver, worker) = small(&[("dot", 1)]);
    let store = script.pair.model.worker(worker).store;
    let (x, y) = (script.value(driver, store), script.value(driver, store));
    let z = script.submit(driver, "dot", &by_reference(&[x, y]))[0];
    assert_eq!(script.counts(), [2, 2, 3]);
    script.unpack(&[x, y, z]);
    script.ready(z, store);
    script.finish(worker);
    assert_eq!(script.counts(), [1, 1, 1]);
    script.drop(&[x]);
    assert_eq!(script.counts(), [-1, 1, 1]);
    script.drop(&[y]);
    assert_eq!(script.counts(), [-1, -1, 1]);
    script.drop(&[z]);
    assert_eq!(script.counts(), [-1, -1, -1]);
}

#[test]
fn more_references_than_there_are_cannot_be_dropped_and_none_is() {
    let (mut script, driver, worker) = small(&[]);
    let object = script.value(driver, script.pair.model.worker(worker).store);
    assert_eq!(script.counts(), [1]);
    let objects = vec![object, object];
    let refused = script.ask(tripod_state::ray::Request::DropReferences { objects });
    assert!(refused.is_err());
    assert_eq!(script.counts(), [1]);
}

#[test]
fn what_is_inside_goes_with_its_container_at_every_store_to_any_depth() {
    for depth in [2, 1_000, 100_000] {
        contained_to(depth);
    }
}

fn contained_to(depth: usize) {
    let mut script = Script::new();
    let stores = [script.store(), script.store()];
    let driver = script.driver(stores[0]);
    script.pair.lightly = depth > 10;
    let mut outermost: Option<ObjectId> = None;
    for _ in 0..depth {
        let object = script.value(driver, stores[0]);
        script.ready(object, stores[1]);
        if let Some(inside) = outermost {
            script.contain(object, &[inside]);
            script.drop(&[inside]);
        }
        outermost = Some(object);
    }
    script.same_counts();
    assert_eq!(script.counts(), vec![1; depth]);
    script.drop(&[outermost.expect("there is one")]);
    script.same_counts();
    assert_eq!(script.counts(), vec![-1; depth]);
    assert_eq!(script.sent.len(), 2 * depth);
}

#[test]
fn what_turns_out_to_be_inside_of_something_that_is_gone_is_given_up_at_once() {
    let (mut script, driver, worker) = small(&[]);
    let store = script.pair.model.worker(worker).store;
    let (inside, container) = (script.value(driver, store), script.value(driver, store));
    script.drop(&[container]);
    script.contain(container, &[inside]);
    assert_eq!(script.counts(), [1, -1]);
    script.drop(&[inside]);
    assert_eq!(script.counts(), [-1, -1]);
}

/// A task does not wait for what is inside of a value, and keeps it alive until its worker has it.
#[test]
fn a_nested_id_is_held_and_not_waited_for() {
    let (mut script, driver, _) = small(&[("f", 1)]);
    let object = script.put(driver);
    script.add(&[object]);
    let nested = Argument::Value { bytes: bytes::Bytes::from_static(b"[]"), nested: vec![object, object] };
    script.add(&[object, object]);
    script.submit_only(driver, "f", &[nested]);
    assert_eq!(script.executed().len(), 1);
    assert_eq!(script.counts(), [4, 3]);
}

/// An empty value on the wire is a reference to object 0.
#[test]
fn object_zero_is_an_object_like_any_other() {
    let (mut script, driver, worker) = small(&[("f", 1)]);
    let object = script.put(driver);
    assert_eq!(object, ObjectId(0));
    script.add(&[object]);
    script.submit(driver, "f", &by_reference(&[object]));
    assert_eq!(script.pair.model.queue.len(), 1);
    script.ready(object, script.pair.model.worker(worker).store);
    assert_eq!(script.executed().len(), 1);
}
