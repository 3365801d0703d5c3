//! Increments count once, however often they were sent.
//!
//! Whatever a counter shows lies between two bounds: what was acknowledged before must be in it, what was
//! never asked for must not, and what is not known may. Calls that bear the same stamp are one increment.

mod bounds;
mod increment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Checked, Rules, Violation};
use crate::history::{Call, History, Key, Micros, Operation, Reply};

use bounds::Bounds;
use increment::{Increment, Misuse};

const CHECKER: &str = "counter";

/// What was done to one counter.
#[derive(Default)]
struct Counter<'a> {
    increments: Vec<Increment<'a>>,
    reads: Vec<(&'a Operation, i64)>,
}

/// A value that an operation was told.
#[derive(Clone, Copy)]
struct Seen<'a> {
    operation: &'a Operation,
    /// The value was current at one moment from here on.
    from: Micros,
    value: i64,
    /// What the counter held just before, if it was an increment that told the value.
    before: i64,
    /// The increment that told the value.
    own: Option<usize>,
}

/// Judges each counter apart from the others.
#[must_use]
pub fn check(history: &History, _rules: &Rules) -> Checked {
    let mut counters: BTreeMap<&Key, Counter<'_>> = BTreeMap::new();
    let mut calls = Vec::new();
    let mut examined = 0;
    for operation in &history.operations {
        match (&operation.call, operation.reply()) {
            (Call::Increment { .. }, _) => {
                examined += 1;
                calls.push(operation);
            }
            (Call::ReadCounter { counter }, Some(Reply::Count(value))) => {
                examined += 1;
                counters.entry(counter).or_default().reads.push((operation, *value));
            }
            _ => {}
        }
    }
    match increment::group(&calls) {
        Ok(increments) => {
            for increment in increments {
                counters.entry(increment.counter).or_default().increments.push(increment);
            }
        }
        Err(Misuse { reason }) => return Checked::void(CHECKER, examined, reason),
    }
    let mut violations = Vec::new();
    for (key, counter) in &counters {
        counter.check(key, &mut violations);
    }
    Checked::told(CHECKER, examined, violations)
}

impl<'a> Counter<'a> {
    fn check(&self, key: &Key, violations: &mut Vec<Violation>) {
        for increment in &self.increments {
            violations.extend(increment.one_answer(key));
        }
        let seen = self.seen();
        let bounds = Bounds::of(&self.increments);
        let before = violations.len();
        for seen in &seen {
            violations.extend(self.within(key, &bounds, seen));
        }
        // What follows holds only where counters never fall, and would tell the same mistakes once more.
        let rises = self.increments.iter().all(|increment| increment.by > 0);
        if rises && violations.len() == before {
            violations.extend(apart(key, &seen));
            violations.extend(in_order(key, &seen));
        }
    }

    /// Every value that somebody was told.
    fn seen(&self) -> Vec<Seen<'a>> {
        let reads = self.reads.iter().map(|(operation, value)| {
            let (value, from) = (*value, operation.invoked);
            Seen { operation, from, value, before: value, own: None }
        });
        let told = self.increments.iter().enumerate().filter_map(|(own, increment)| {
            let (operation, value) = increment.told()?;
            let before = value.checked_sub(increment.by)?;
            Some(Seen { operation, from: increment.from, value, before, own: Some(own) })
        });
        reads.chain(told).collect()
    }

    fn within(&self, key: &Key, bounds: &Bounds, seen: &Seen<'a>) -> Option<Violation> {
        let own = seen.own.map(|own| &self.increments[own]);
        let (low, high) = bounds.at(seen.from, seen.operation.completed, own);
        let value = i128::from(seen.value);
        let id = seen.operation.id;
        if value < low {
            let text = format!(
                "operation {id} saw {value}, though increments that were acknowledged before make at least \
                {low}"
            );
            let last = self.increments.iter().filter(|increment| increment.sure < Some(seen.from));
            let last =
                last.filter(|increment| increment.sure.is_some()).max_by_key(|increment| increment.sure);
            let mut shown = vec![seen.operation];
            shown.extend(last.into_iter().flat_map(|increment| increment.calls.iter().copied()));
            return Some(Violation::new("lost-increment", key, text, &shown));
        }
        if value > high {
            let text = format!(
                "operation {id} saw {value}, though all increments that can have taken effect by then make \
                at most {high}: some took effect more than once"
            );
            // Who was sent most often is the likeliest to have counted twice.
            let often = self.increments.iter().filter(|increment| increment.from <= seen.operation.completed);
            let often = often.max_by_key(|increment| {
                increment.calls.iter().map(|call| u64::from(call.attempts)).sum::<u64>()
            });
            let mut shown = vec![seen.operation];
            shown.extend(often.into_iter().flat_map(|increment| increment.calls.iter().copied()));
            return Some(Violation::new("double-count", key, text, &shown));
        }
        None
    }
}

/// No two increments passed over the same values.
fn apart(key: &Key, seen: &[Seen<'_>]) -> Option<Violation> {
    let mut steps: Vec<&Seen<'_>> = seen.iter().filter(|seen| seen.own.is_some()).collect();
    steps.sort_by_key(|step| (step.value, step.operation.id));
    let pair = steps.windows(2).find(|pair| pair[1].before < pair[0].value)?;
    let (one, other) = (pair[0], pair[1]);
    let text = format!(
        "operations {} and {} were told {} and {}: both cannot have counted",
        one.operation.id, other.operation.id, one.value, other.value
    );
    Some(Violation::new("lost-increment", key, text, &[one.operation, other.operation]))
}

/// A counter that only rises never shows less than what was seen before.
fn in_order(key: &Key, seen: &[Seen<'_>]) -> Option<Violation> {
    let mut begins: Vec<&Seen<'_>> = seen.iter().collect();
    begins.sort_by_key(|seen| seen.from);
    let mut ends: Vec<&Seen<'_>> = seen.iter().collect();
    ends.sort_by_key(|seen| seen.operation.completed);
    let mut highest: Option<&Seen<'_>> = None;
    let mut ended = ends.into_iter().peekable();
    for now in begins {
        while let Some(end) = ended.next_if(|end| end.operation.completed < now.from) {
            if highest.is_none_or(|highest| highest.value < end.value) {
                highest = Some(end);
            }
        }
        if let Some(earlier) = highest.filter(|earlier| earlier.value > now.before) {
            let text = format!(
                "operation {} saw {} after operation {} had seen {}",
                now.operation.id, now.value, earlier.operation.id, earlier.value
            );
            return Some(Violation::new("stale-read", key, text, &[earlier.operation, now.operation]));
        }
    }
    None
}
