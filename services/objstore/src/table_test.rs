//! A row for each cell of the table of states, and laws over random histories.

use proptest::prelude::*;

use super::*;

const X: ObjectId = ObjectId(7);
const Y: ObjectId = ObjectId(8);
const Z: ObjectId = ObjectId(0);

/// A table in which X has that state.
fn in_state(state: &str) -> Table {
    let mut table = Table::default();
    match state {
        "not present" => {}
        "pre-allocated" => assert!(matches!(table.deliver(X), Delivery::Begin(_))),
        "not ready" => assert!(table.create(X).is_ok()),
        "ready" => ready(&mut table, X),
        "deallocated" => {
            ready(&mut table, X);
            assert_eq!(table.deallocate(X), [X]);
        }
        "lost" => {
            ready(&mut table, X);
            assert_eq!(table.lose(X), [X]);
        }
        "too large" => {
            let Delivery::Begin(life) = table.deliver(X) else { panic!("nothing is here") };
            assert!(table.refuse(X, life, 99));
        }
        other => panic!("{other}"),
    }
    table
}

fn ready(table: &mut Table, id: ObjectId) {
    let life = table.create(id).expect("free");
    table.finish(id, life).expect("current");
}

/// What each event does in each state, as words.
fn row(state: &str) -> [&'static str; 5] {
    let deliver = match in_state(state).deliver(X) {
        Delivery::Begin(_) => "begin",
        Delivery::UnderWay => "under way",
        Delivery::Present => "present",
    };
    let create = if in_state(state).create(X).is_ok() { "ok" } else { "exists" };
    let find = match in_state(state).find(X) {
        Found::Ready(_) => "ready",
        Found::NotYet => "waits",
        Found::Deallocated => "deallocated",
        Found::Lost => "lost",
        Found::TooLarge(_) => "too large",
    };
    let alias = if in_state(state).alias(Y, X).is_ok() { "ok" } else { "absent" };
    let deallocate = if in_state(state).deallocate(X).is_empty() { "nothing" } else { "ended" };
    [deliver, create, find, alias, deallocate]
}

#[test]
fn every_event_in_every_state() {
    assert_eq!(row("not present"), ["begin", "ok", "waits", "absent", "nothing"]);
    assert_eq!(row("pre-allocated"), ["under way", "ok", "waits", "absent", "ended"]);
    assert_eq!(row("not ready"), ["under way", "exists", "waits", "absent", "ended"]);
    assert_eq!(row("ready"), ["present", "exists", "ready", "ok", "ended"]);
    assert_eq!(row("deallocated"), ["begin", "ok", "deallocated", "absent", "nothing"]);
    assert_eq!(row("lost"), ["begin", "ok", "lost", "absent", "ended"]);
    assert_eq!(row("too large"), ["begin", "ok", "too large", "ok", "ended"]);
}

#[test]
fn a_transfer_that_a_process_overtook_has_no_effect_any_more() {
    let mut table = Table::default();
    let Delivery::Begin(transfer) = table.deliver(X) else { panic!("nothing is here") };
    let process = table.create(X).expect("nothing has come yet");
    assert_eq!(table.fill(X, transfer), Err(Refusal::Gone(X)));
    table.abandon(X, transfer);
    assert_eq!(table.finish(X, process), Ok(()));
    table.abandon(X, process);
    assert_eq!(table.find(X), Found::Ready(X));
}

#[test]
fn an_object_deallocated_while_it_is_written_cannot_be_finished() {
    let mut table = Table::default();
    let life = table.create(X).expect("free");
    assert_eq!(table.deallocate(X), [X]);
    assert_eq!(table.finish(X, life), Err(Refusal::Gone(X)));
    let again = table.create(X).expect("made once more");
    assert_eq!(table.finish(X, life), Err(Refusal::Gone(X)));
    assert_eq!(table.finish(X, again), Ok(()));
}

#[test]
fn aliases_end_with_their_object() {
    let mut table = in_state("ready");
    table.alias(Y, X).expect("ready");
    table.alias(Z, Y).expect("an alias of an alias");
    table.alias(Y, X).expect("once more");
    assert_eq!((table.find(Z), table.ready()), (Found::Ready(X), vec![Z, X, Y]));
    assert_eq!(table.names_of(X), [X, Z, Y]);
    assert_eq!(table.deallocate(X), [Z, Y, X]);
    assert_eq!((table.find(Y), table.ready()), (Found::Deallocated, vec![]));
}

#[test]
fn other_names_of_what_is_too_large_are_known_until_it_comes_all_the_same() {
    let mut table = in_state("too large");
    table.alias(Y, X).expect("known to be too large");
    table.alias(Z, Y).expect("a name of a name");
    assert_eq!((table.find(Z), table.ready()), (Found::TooLarge(99), vec![]));
    ready(&mut table, X);
    table.alias(Y, X).expect("here");
    assert_eq!((table.find(X), table.find(Y)), (Found::Ready(X), Found::Ready(X)));
    table.alias(Z, X).expect("here");
    assert_eq!(table.deallocate(X), [Z, Y, X]);
}

#[test]
fn who_overtook_a_transfer_does_not_hear_that_its_object_is_too_large() {
    let mut table = Table::default();
    let Delivery::Begin(life) = table.deliver(X) else { panic!("nothing is here") };
    ready(&mut table, X);
    assert!(!table.refuse(X, life, 99));
    assert_eq!(table.find(X), Found::Ready(X));
}

#[test]
fn the_oldest_of_very_many_that_are_too_large_are_forgotten() {
    let mut table = Table::default();
    let ids = TOO_LARGE_MAX as u64 + 5;
    for id in (0..ids).map(ObjectId) {
        let Delivery::Begin(life) = table.deliver(id) else { panic!("nothing is here") };
        assert!(table.refuse(id, life, 99));
    }
    assert_eq!(table.too_large.len(), TOO_LARGE_MAX);
    assert_eq!(
        (table.find(ObjectId(0)), table.find(ObjectId(ids - 1))),
        (Found::NotYet, Found::TooLarge(99))
    );
}

#[test]
fn an_object_is_no_alias_and_an_alias_no_object() {
    let mut table = in_state("ready");
    ready(&mut table, Y);
    assert_eq!(table.alias(Y, X), Err(Refusal::AliasTaken(Y)));
    table.alias(Z, X).expect("free");
    assert_eq!(table.alias(Z, Y), Err(Refusal::AliasTaken(Z)));
    assert_eq!((table.create(Z), table.deliver(Z)), (Err(Refusal::Exists(Z)), Delivery::Present));
    assert_eq!(table.alias(X, X), Ok(()));
    assert_eq!(table.deallocate(Z), [Z]);
    assert_eq!(table.find(X), Found::Ready(X));
}

proptest! {
    #[test]
    fn what_can_be_got_is_what_is_listed(steps in proptest::collection::vec((0_u8..8, 0_u64..5, 0_u64..5), 0..120)) {
        let mut table = Table::default();
        let mut lives = Vec::new();
        for (step, a, b) in steps {
            let (id, other) = (ObjectId(a), ObjectId(b));
            match step {
                0 => if let Delivery::Begin(life) = table.deliver(id) { lives.push((id, life)) },
                1 => if let Ok(life) = table.create(id) { lives.push((id, life)) },
                2 => for (id, life) in &lives { _ = table.fill(*id, *life) },
                3 => for (id, life) in lives.drain(..) { _ = table.finish(id, life) },
                4 => _ = table.alias(id, other),
                5 => for (id, life) in lives.drain(..) { table.abandon(id, life); },
                6 => for (id, life) in lives.drain(..) { _ = table.refuse(id, life, a) },
                _ => _ = table.deallocate(id),
            }
            let listed = table.ready();
            prop_assert!(listed.is_sorted());
            for id in (0..5).map(ObjectId) {
                let found = table.find(id);
                prop_assert_eq!(matches!(found, Found::Ready(_)), listed.contains(&id));
                if let Found::Ready(canonical) = found {
                    prop_assert_eq!(table.find(canonical), Found::Ready(canonical));
                    prop_assert!(table.names_of(canonical).contains(&id));
                }
            }
        }
    }
}
