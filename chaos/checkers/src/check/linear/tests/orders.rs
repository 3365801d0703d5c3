//! Histories so small that every order of their operations can be tried.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::judge;
use crate::check::testing::small;
use crate::history::{Call, Found, Key, Operation, Outcome, Refusal, Reply, Value, Version};

/// Every order is tried, by rules that are written down once more and as simply as possible.
#[test]
fn the_search_is_right_both_ways() {
    let mut random = SmallRng::seed_from_u64(11);
    let (mut with, mut without) = (0, 0);
    for round in 0..6_000 {
        let length = random.random_range(2..7);
        let tells = round % 2 == 0;
        // Sometimes so few values that several writes write the same.
        let values = if round % 3 == 0 { 3 } else { 100 };
        let history = small::random(&mut random, length, |random, id| any_call(random, id, tells, values));
        let expected = small::has_order(&history, &None, &simple);
        let checked = judge(&history);
        assert_eq!(checked.held(), expected, "round {round}: {:#?} {checked:?}", history.operations);
        *if expected { &mut with } else { &mut without } += 1;
    }
    eprintln!("{with} histories with an order, {without} without");
    assert!(with > 500 && without > 500, "{with} {without}");
}

fn any_call(random: &mut SmallRng, id: u64, tells: bool, values: u64) -> (Call, Outcome) {
    let key = Key::from("k");
    let value = Value(id % values);
    let version = |random: &mut SmallRng| tells.then(|| Version(random.random_range(1..4)));
    match random.random_range(0..10) {
        0..=3 => {
            let value = Value(random.random_range(0..6) % values);
            let found = Found { value, version: version(random), index: None };
            (Call::Read { key }, Outcome::Ok(Reply::Value(random.random_bool(0.7).then_some(found))))
        }
        4..=5 => {
            let version = version(random);
            (Call::Write { key, value }, Outcome::Ok(Reply::Written { version, index: None }))
        }
        6 => (Call::Delete { key }, Outcome::Ok(Reply::Done)),
        7 => {
            let won = Reply::Written { version: None, index: None };
            let answer = if random.random_bool(0.5) { won } else { Reply::Refused(Refusal::Exists) };
            (Call::Insert { key, value }, Outcome::Ok(answer))
        }
        _ => {
            let expected = Version(random.random_range(0..3));
            let answer = if random.random_bool(0.5) {
                Reply::Written { version: version(random), index: None }
            } else {
                let current = tells.then(|| Version(random.random_range(0..4)));
                Reply::Refused(Refusal::VersionMismatch { current })
            };
            (Call::CompareAndSet { key, expected, value }, Outcome::Ok(answer))
        }
    }
}

/// A register as value and version.
#[expect(
    clippy::option_option,
    reason = "the outer one says whether the answer fits, the inner one what is there"
)]
fn simple(held: &Option<(u64, u64)>, operation: &Operation) -> Option<Option<(u64, u64)>> {
    let current = held.map_or(0, |held| held.1);
    let (applies, value) = match &operation.call {
        Call::Read { .. } => {
            let Reply::Value(found) = operation.reply()? else { return None };
            let fits = match (found, held) {
                (None, None) => true,
                (Some(found), Some((value, version))) => {
                    found.value.0 == *value && found.version.is_none_or(|found| found.0 == *version)
                }
                _ => false,
            };
            return fits.then_some(*held);
        }
        Call::Delete { .. } => return Some(None),
        Call::Write { value, .. } => (true, value.0),
        Call::Insert { value, .. } => (current == 0, value.0),
        Call::CompareAndSet { value, expected, .. } => (current == expected.0, value.0),
        other => panic!("{other} is no call to a register"),
    };
    let refused = match operation.reply() {
        Some(Reply::Refused(Refusal::VersionMismatch { current: Some(told) })) => told.0 == current,
        Some(Reply::Refused(_)) => true,
        Some(Reply::Written { version, .. }) => {
            let fits = applies && version.is_none_or(|version| version.0 == current + 1);
            return fits.then_some(Some((value, current + 1)));
        }
        _ => return Some(if applies { Some((value, current + 1)) } else { *held }),
    };
    (!applies && refused).then_some(*held)
}
