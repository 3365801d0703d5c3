//! Ids that mean others, in every order in which it can become known.

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
