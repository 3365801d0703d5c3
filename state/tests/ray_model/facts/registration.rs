//! Which store a process belongs to.

use tripod_state::ray::ids::StoreId;
use tripod_state::ray::{Answer, Registration, Request, Role};

use crate::facts::script::Script;

#[test]
fn without_an_address_it_is_the_store_of_the_host_with_the_fewest_workers() {
    let mut script = Script::new();
    let host = "10.0.0.1";
    for port in [9000, 9001] {
        let address = format!("{host}:{port}");
        script.ask(Request::RegisterStore { address }).expect("a store can always register");
    }
    let mut register = || {
        let (host, store, role) = (host.to_owned(), String::new(), Role::Worker);
        let asked = Registration { host, store, role, attributed: false, extended: false, slots: 1 };
        match script.ask(Request::RegisterWorker(asked)) {
            Ok(Answer::Worker { store, .. }) => store,
            other => panic!("a worker could not register: {other:?}"),
        }
    };
    assert_eq!([(); 4].map(|()| register()), [0, 1, 0, 1].map(StoreId));
}
