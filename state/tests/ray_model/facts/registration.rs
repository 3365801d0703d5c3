//! Which store a process belongs to, and where it is to listen.

use tripod_state::ray::ids::{StoreId, WorkerId};
use tripod_state::ray::{Answer, Registration, Request, Role};

use crate::facts::script::Script;
use crate::upstream::Verdict;

fn register(script: &mut Script, host: &str, store: &str) -> Verdict {
    let (host, store, role) = (host.to_owned(), store.to_owned(), Role::Worker);
    let asked = Registration { host, store, role, attributed: false, extended: false, slots: 1 };
    script.ask(Request::RegisterWorker(asked))
}

fn store_of(verdict: Verdict) -> StoreId {
    match verdict {
        Ok(Answer::Worker { store, .. }) => store,
        other => panic!("a worker could not register: {other:?}"),
    }
}

/// Two stores on one host, and one on a host whose address begins alike.
fn hosts() -> Script {
    let mut script = Script::new();
    for address in ["10.0.0.1:9000", "10.0.0.1:9001", "10.0.0.12:9000"] {
        let address = address.to_owned();
        script.ask(Request::RegisterStore { address }).expect("a store can always register");
    }
    script
}

#[test]
fn an_explicit_address_wins_over_other_stores_of_the_host() {
    let mut script = hosts();
    for (address, store) in [("10.0.0.1:9001", 1), ("10.0.0.1:9000", 0), ("10.0.0.12:9000", 2)] {
        assert_eq!(store_of(register(&mut script, "10.0.0.1", address)), StoreId(store));
    }
}

#[test]
fn without_an_address_it_is_the_store_of_the_host_with_the_fewest_workers() {
    let mut script = hosts();
    let stores: Vec<_> = (0..4).map(|_| store_of(register(&mut script, "10.0.0.1", ""))).collect();
    assert_eq!(stores, [0, 1, 0, 1].map(StoreId));
}

#[test]
fn a_host_whose_address_begins_alike_is_another_host() {
    let mut script = hosts();
    assert_eq!(store_of(register(&mut script, "10.0.0.12", "")), StoreId(2));
    assert_eq!(register(&mut script, "10.0.0.2", ""), Err(vec!["NoStore"]));
    assert_eq!(register(&mut script, "10.0.0", ""), Err(vec!["NoStore"]));
    assert_eq!(register(&mut script, "10.0.0.1", "10.0.0.1:900"), Err(vec!["NoStore"]));
}

#[test]
fn the_scheduler_says_on_which_port_a_worker_listens() {
    let mut script = hosts();
    for number in 0..3 {
        let Ok(Answer::Worker { worker, address, store_address, .. }) =
            register(&mut script, "10.0.0.12", "")
        else {
            panic!("there is a store");
        };
        assert_eq!(worker, WorkerId(number));
        assert_eq!(address, format!("10.0.0.12:{}", 40_000 + number));
        assert_eq!(store_address, "10.0.0.12:9000");
    }
}
