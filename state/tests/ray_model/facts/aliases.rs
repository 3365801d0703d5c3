//! Ids that mean others, in every order in which it can become known.

use tripod_state::ray::Request;
use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::Info;

use crate::facts::script::{Script, by_reference};
use crate::upstream::Sent;

/// What becomes known about a chain of three ids.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Known {
    HIsG,
    GIsF,
    FIsReady,
}

const ORDERS: [[Known; 3]; 6] = [
    [Known::HIsG, Known::GIsF, Known::FIsReady],
    [Known::HIsG, Known::FIsReady, Known::GIsF],
    [Known::GIsF, Known::HIsG, Known::FIsReady],
    [Known::GIsF, Known::FIsReady, Known::HIsG],
    [Known::FIsReady, Known::HIsG, Known::GIsF],
    [Known::FIsReady, Known::GIsF, Known::HIsG],
];

/// Two stores; the driver is at the second one and the values come into being at the first.
fn apart() -> (Script, WorkerId, WorkerId, [StoreId; 2]) {
    let mut script = Script::new();
    let stores = [script.store(), script.store()];
    let driver = script.driver(stores[1]);
    let worker = script.worker(stores[0], &[("f", 1)]);
    script.idle(worker);
    (script, driver, worker, stores)
}

fn learn(script: &mut Script, [f, g, h]: [ObjectId; 3], known: Known) {
    match known {
        Known::HIsG => script.alias(h, g),
        Known::GIsF => script.alias(g, f),
        Known::FIsReady => script.ready(f, StoreId(0)),
    }
}

#[test]
fn a_getter_of_a_chain_gets_its_value_in_whatever_order_the_chain_becomes_known() {
    let mut ends: Vec<Info> = Vec::new();
    for order in ORDERS {
        let (mut script, driver, _, [_, here]) = apart();
        let chain = [script.put(driver), script.put(driver), script.put(driver)];
        let [f, _, h] = chain;
        script.add(&chain);
        script.get(driver, h);
        let mut sent = Vec::new();
        for known in order {
            learn(&mut script, chain, known);
            sent.append(&mut script.sent);
        }
        assert_eq!(sent, [Sent::Deliver(here, f)], "{order:?}");
        script.ready(f, here);
        assert_eq!(script.sent, [Sent::NotifyAlias(here, h, f)], "{order:?}");
        assert_eq!(script.counts(), [1, 1, 1]);
        ends.push(script.pair.model.info());
    }
    assert!(ends.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Whether the worker says first that it is done or the store that the result is there, and wherever that falls into
/// the story of an alias: the end is the same.
#[test]
fn the_order_of_reports_does_not_matter_in_the_end() {
    let mut ends: Vec<Info> = Vec::new();
    for order in ORDERS {
        for place in 0..=3 {
            let (mut script, driver, worker, [there, _]) = apart();
            let f = script.submit(driver, "f", &[])[0];
            let chain = [f, script.put(driver), script.put(driver)];
            script.add(&chain[1..]);
            script.unpack(&[f]);
            for (number, known) in order.into_iter().enumerate() {
                if number == place {
                    script.finish(worker);
                }
                learn(&mut script, chain, known);
            }
            if place == 3 {
                script.finish(worker);
            }
            assert_eq!(script.pair.model.locations(chain[2]), [there]);
            ends.push(script.pair.model.info());
        }
    }
    assert!(ends.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_task_waits_until_its_alias_means_a_value_and_its_store_is_told() {
    for order in ORDERS {
        let (mut script, driver, worker, [there, _]) = apart();
        let chain = [script.put(driver), script.put(driver), script.put(driver)];
        script.add(&chain);
        script.submit(driver, "f", &by_reference(&[chain[2]]));
        let mut sent = Vec::new();
        for known in order {
            assert_eq!(sent, []);
            learn(&mut script, chain, known);
            sent.append(&mut script.sent);
        }
        assert!(sent.contains(&Sent::NotifyAlias(there, chain[2], chain[0])), "{order:?}");
        assert!(matches!(sent.iter().find(|sent| matches!(sent, Sent::Execute(..))),
            Some(Sent::Execute(to, _)) if *to == worker));
    }
}

#[test]
fn an_id_means_one_other_and_never_itself() {
    let (mut script, driver, _, _) = apart();
    let [f, g, h] = [script.put(driver), script.put(driver), script.put(driver)];
    script.add(&[f, g, h]);
    script.alias(g, f);
    script.alias(h, g);
    let mut refused = |alias, target| script.ask(Request::Alias { alias, target, run: None }).unwrap_err();
    assert_eq!(refused(h, f), ["AliasedAlready"]);
    assert_eq!(refused(f, h), ["AliasCycle"]);
    assert_eq!(refused(f, f)[0], "AliasOfItself");
    assert_eq!(refused(f, ObjectId(9)), ["ObjectUnknown"]);
    assert_eq!(refused(ObjectId(9), f), ["ObjectUnknown"]);
    // Told twice, it is the same.
    script.alias(h, g);
}

#[test]
fn an_alias_has_no_value_of_its_own_and_a_value_means_itself() {
    let (mut script, driver, _, [there, _]) = apart();
    let [f, g] = [script.put(driver), script.put(driver)];
    script.add(&[f, g]);
    script.alias(g, f);
    let ready = Request::Ready { object: g, store: there, run: None };
    assert_eq!(script.ask(ready), Err(vec!["ReadyAlias"]));
    let value = script.value(driver, there);
    let alias = Request::Alias { alias: value, target: f, run: None };
    assert_eq!(script.ask(alias), Err(vec!["AliasOfValue"]));
}

#[test]
fn a_long_chain_of_aliases_is_known_and_goes_without_a_deep_stack() {
    const LENGTH: usize = 100_000;
    let (mut script, driver, _, [there, _]) = apart();
    script.pair.lightly = true;
    let chain: Vec<_> = (0..LENGTH).map(|_| script.put(driver)).collect();
    script.add(&chain[LENGTH - 1..]);
    for pair in chain.windows(2).rev() {
        script.alias(pair[1], pair[0]);
    }
    script.ready(chain[0], there);
    let last = chain[LENGTH - 1];
    script.get(driver, last);
    assert_eq!(script.sent, [Sent::Deliver(StoreId(1), chain[0])]);
    script.ready(chain[0], StoreId(1));
    script.same_counts();
    assert_eq!(script.counts().iter().sum::<i64>(), 1);
    script.drop(&[last]);
    script.same_counts();
    assert_eq!(script.counts(), vec![-1; LENGTH]);
}
