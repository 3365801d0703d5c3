//! Every mistake that is planted in a valid history is seen.

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::super::by_key;
use super::{judge, model, plain};
use crate::check::testing::Tally;
use crate::history::{Call, Found, History, Key, Operation, Outcome, Refusal, Reply, Value};

const SEEDS: u64 = 40;

fn any<'a, T>(random: &mut SmallRng, items: &'a [T]) -> Option<&'a T> {
    (!items.is_empty()).then(|| &items[random.random_range(0..items.len())])
}

/// Acknowledged plain writes of the same key and a read of it, each complete before the next begins.
fn write_write_read(history: &History) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    for (_, operations) in by_key(history) {
        let places: Vec<usize> =
            operations.iter().map(|operation| usize::try_from(operation.id.0).unwrap()).collect();
        let at = |place: usize| &history.operations[place];
        let writes: Vec<usize> = places
            .iter()
            .copied()
            .filter(|place| at(*place).acknowledged() && matches!(at(*place).call, Call::Write { .. }))
            .collect();
        let reads =
            places.iter().copied().filter(|place| matches!(at(*place).reply(), Some(Reply::Value(_))));
        for read in reads {
            let Some(new) = writes.iter().rfind(|write| at(**write).completed < at(read).invoked) else {
                continue;
            };
            let Some(old) = writes.iter().rfind(|write| at(**write).completed < at(*new).invoked) else {
                continue;
            };
            found.push((*old, *new, read));
        }
    }
    found
}

fn value_of(operation: &Operation) -> Value {
    match &operation.call {
        Call::Write { value, .. } => *value,
        other => panic!("{other} writes no value"),
    }
}

#[test]
fn stale_reads_are_seen() {
    Tally::all_caught(
        "stale read",
        SEEDS,
        model,
        |random, history| {
            let places = write_write_read(history);
            let Some((old, _, read)) = any(random, &places).copied() else { return false };
            let value = value_of(&history.operations[old]);
            let found = Found { value, version: None, index: None };
            history.operations[read].outcome = Outcome::Ok(Reply::Value(Some(found)));
            true
        },
        judge,
    );
}

#[test]
fn lost_writes_are_seen() {
    Tally::all_caught(
        "lost write",
        SEEDS,
        plain,
        |random, history| {
            let places = write_write_read(history);
            let Some((_, _, read)) = any(random, &places).copied() else { return false };
            history.operations[read].outcome = Outcome::Ok(Reply::Value(None));
            true
        },
        judge,
    );
}

#[test]
fn values_from_nowhere_and_of_failed_writes_are_seen() {
    Tally::all_caught(
        "phantom value",
        SEEDS,
        model,
        |random, history| {
            let failed: Vec<Value> = history
                .operations
                .iter()
                .filter(|operation| matches!(operation.outcome, Outcome::Fail(_)))
                .filter_map(|operation| match operation.call {
                    Call::Write { value, .. } => Some(value),
                    _ => None,
                })
                .collect();
            let value = any(random, &failed).copied().unwrap_or(Value(1 << 40));
            let reads: Vec<usize> = (0..history.operations.len())
                .filter(|place| matches!(history.operations[*place].reply(), Some(Reply::Value(_))))
                .collect();
            let Some(read) = any(random, &reads).copied() else { return false };
            let found = Found { value, version: None, index: None };
            history.operations[read].outcome = Outcome::Ok(Reply::Value(Some(found)));
            true
        },
        judge,
    );
}

/// A write that took effect twice shows as a version too high for all that come after it.
#[test]
fn double_applies_are_seen_by_versions() {
    let tells = |seed| plain(seed * 2);
    Tally::all_caught(
        "double apply",
        SEEDS,
        tells,
        |random, history| {
            let places = write_write_read(history);
            let Some((_, new, _)) = any(random, &places).copied() else { return false };
            let Operation { call, completed, .. } = history.operations[new].clone();
            let Call::Write { key, .. } = call else { return false };
            let mut raised = 0;
            for operation in &mut history.operations {
                let same = match &operation.call {
                    Call::Write { key: other, .. } | Call::Read { key: other } => *other == key,
                    _ => false,
                };
                if !same || operation.invoked < completed {
                    continue;
                }
                match &mut operation.outcome {
                    Outcome::Ok(Reply::Written { version: Some(version), .. })
                    | Outcome::Ok(Reply::Value(Some(Found { version: Some(version), .. }))) => {
                        // So high that no unknown writes can explain it.
                        version.0 += 300;
                        raised += 1;
                    }
                    _ => {}
                }
            }
            raised > 0
        },
        judge,
    );
}

#[test]
fn two_winners_of_one_insertion_are_seen() {
    Tally::all_caught(
        "two winners",
        SEEDS,
        plain,
        |random, history| {
            let winners: Vec<Key> = history
                .operations
                .iter()
                .filter(|operation| operation.acknowledged())
                .filter_map(|operation| match &operation.call {
                    Call::Insert { key, .. } => Some(key.clone()),
                    _ => None,
                })
                .collect();
            let losers: Vec<usize> = (0..history.operations.len())
                .filter(|place| {
                    let operation = &history.operations[*place];
                    matches!(&operation.call, Call::Insert { key, .. } if winners.contains(key))
                        && matches!(operation.reply(), Some(Reply::Refused(Refusal::Exists)))
                })
                .collect();
            let Some(loser) = any(random, &losers).copied() else { return false };
            history.operations[loser].outcome = Outcome::Ok(Reply::Written { version: None, index: None });
            true
        },
        judge,
    );
}

/// Two acknowledged writes that exchange their log indexes.
#[test]
fn indexes_against_time_are_seen() {
    let tells = |seed| plain(seed * 2);
    Tally::all_caught(
        "exchanged indexes",
        SEEDS,
        tells,
        |random, history| {
            let places = write_write_read(history);
            let Some((old, new, _)) = any(random, &places).copied() else { return false };
            let outcome = history.operations[old].outcome.clone();
            history.operations[old].outcome =
                std::mem::replace(&mut history.operations[new].outcome, outcome);
            true
        },
        judge,
    );
}
