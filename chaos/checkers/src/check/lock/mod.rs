//! A lock has one holder for each token, tokens only rise, and what a lock protects is never written back by a
//! holder that was overtaken.
//!
//! Whoever takes a lock writes the token that follows the last one, so all that a lock can be stands in one
//! order: held with token 1, free after it, held with token 2, and so on. The same is true of what it protects,
//! by token and then by value, because values under one token rise. So a lock and its register are judged
//! alike: nothing is acknowledged or seen that lies behind what was acknowledged or seen before.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Checked, Rules, Violation};
use crate::history::{Call, Fence, Guarded, History, Key, LockSeen, Micros, Operation, Refusal, Reply};

const CHECKER: &str = "lock";

/// The position of a lock, or of what it protects, in its order. The second number tells held from free, or is the
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position(Fence, u64);

impl Position {
    /// Nobody has held it, or written it.
    const FIRST: Self = Self(Fence(0), 0);

    fn held(fence: Fence) -> Self {
        Self(fence, 0)
    }

    fn free(fence: Fence) -> Self {
        Self(fence, 1)
    }
}

/// That something stood at a position at some moment of an operation.
#[derive(Clone, Copy)]
struct Claim<'a> {
    operation: &'a Operation,
    position: Position,
    /// The operation brought it there, and did not find it.
    wrote: bool,
}

/// All that is known of one lock, or of one register that a lock protects.
#[derive(Default)]
struct Thing<'a> {
    claims: Vec<Claim<'a>>,
    /// For each position, when it was first asked for in a way that may have taken effect.
    asked: BTreeMap<Position, Micros>,
    /// Acquisitions that were acknowledged, with the position that they must have found.
    taken: Vec<(&'a Operation, Position)>,
    /// Whoever was told that somebody else has changed it, with the position that it had left it at.
    refused: Vec<(&'a Operation, Position)>,
}

/// Judges each lock and each register apart from the others.
#[must_use]
pub fn check(history: &History, _rules: &Rules) -> Checked {
    let mut locks: BTreeMap<&Key, Thing<'_>> = BTreeMap::new();
    let mut guarded: BTreeMap<&Key, Thing<'_>> = BTreeMap::new();
    let mut examined = 0;
    for operation in &history.operations {
        match &operation.call {
            Call::Acquire { lock, .. } | Call::Release { lock, .. } | Call::ReadLock { lock } => {
                examined += 1;
                locks.entry(lock).or_default().note(operation);
            }
            Call::WriteGuarded { register, .. } | Call::ReadGuarded { register } => {
                examined += 1;
                guarded.entry(register).or_default().note(operation);
            }
            _ => {}
        }
    }
    let mut violations = Vec::new();
    for (key, lock) in &locks {
        violations.extend(lock.two_holders(key));
        violations.extend(lock.rises(key, ["token-went-back", "stale-lock-read"]));
        violations.extend(lock.phantom(key, "phantom-holder"));
        violations.extend(lock.taken_while_held(key));
        violations.extend(lock.refused_by_nobody(key));
    }
    for (key, register) in &guarded {
        violations.extend(register.rises(key, ["stale-write-accepted", "guarded-value-went-back"]));
        violations.extend(register.phantom(key, "phantom-guarded-value"));
        violations.extend(register.refused_by_nobody(key));
    }
    Checked::told(CHECKER, examined, violations)
}

impl<'a> Thing<'a> {
    fn note(&mut self, operation: &'a Operation) {
        let (wanted, before) = match &operation.call {
            Call::Acquire { fence, steals, .. } => {
                let last = Fence(fence.0.saturating_sub(1));
                let before = if *steals { Position::held(last) } else { Position::free(last) };
                (Some(Position::held(*fence)), before)
            }
            Call::Release { fence, .. } => (Some(Position::free(*fence)), Position::held(*fence)),
            Call::WriteGuarded { fence, value, .. } => (Some(Position(*fence, value.0)), Position::FIRST),
            _ => (None, Position::FIRST),
        };
        if let (Some(position), true) = (wanted, operation.outcome.may_have_effect()) {
            let first = self.asked.entry(position).or_insert(operation.invoked);
            *first = operation.invoked.min(*first);
        }
        let saw = |position| Claim { operation, position, wrote: false };
        match (operation.reply(), wanted) {
            (Some(Reply::Done), Some(position)) => {
                self.claims.push(Claim { operation, position, wrote: true });
                if matches!(operation.call, Call::Acquire { .. }) {
                    self.taken.push((operation, before));
                }
            }
            (Some(Reply::Refused(Refusal::VersionMismatch { .. })), Some(_)) => {
                self.refused.push((operation, before));
            }
            (Some(Reply::Lock(None) | Reply::Guarded(None)), _) => self.claims.push(saw(Position::FIRST)),
            (Some(Reply::Lock(Some(LockSeen { fence, held }))), _) => {
                self.claims.push(saw(if *held { Position::held(*fence) } else { Position::free(*fence) }));
            }
            (Some(Reply::Guarded(Some(Guarded { fence, value }))), _) => {
                self.claims.push(saw(Position(*fence, value.0)));
            }
            _ => {}
        }
    }

    /// No token was given out twice.
    fn two_holders(&self, key: &Key) -> Option<Violation> {
        let mut taken: BTreeMap<Position, &Operation> = BTreeMap::new();
        self.claims.iter().filter(|claim| claim.wrote).find_map(|claim| {
            let first = taken.insert(claim.position, claim.operation)?;
            let text = format!(
                "operations {} and {} were both told that token {} is theirs",
                first.id, claim.operation.id, claim.position.0
            );
            Some(Violation::new("two-holders", key, text, &[first, claim.operation]))
        })
    }

    /// Nothing lies behind what was known before it was asked for. `rules` are the names for what was written
    /// and for what was seen.
    fn rises(&self, key: &Key, rules: [&str; 2]) -> Option<Violation> {
        let mut begins: Vec<&Claim<'_>> = self.claims.iter().collect();
        begins.sort_by_key(|claim| (claim.operation.invoked, claim.operation.id));
        let mut ends = begins.clone();
        ends.sort_by_key(|claim| (claim.operation.completed, claim.operation.id));
        let mut ends = ends.into_iter().peekable();
        let mut highest: Option<&Claim<'_>> = None;
        for claim in begins {
            while let Some(end) = ends.next_if(|end| end.operation.completed < claim.operation.invoked) {
                if highest.is_none_or(|highest| highest.position < end.position) {
                    highest = Some(end);
                }
            }
            let behind = |known: &&Claim<'_>| {
                if claim.wrote { known.position >= claim.position } else { known.position > claim.position }
            };
            if let Some(known) = highest.filter(behind) {
                let (rule, did) =
                    if claim.wrote { (rules[0], "was acknowledged") } else { (rules[1], "saw it") };
                let text = format!(
                    "operation {} {did} at token {}, though operation {} had shown token {}{} before",
                    claim.operation.id,
                    claim.position.0,
                    known.operation.id,
                    known.position.0,
                    if known.position.0 == claim.position.0 { ", and more of it," } else { "" }
                );
                return Some(Violation::new(rule, key, text, &[known.operation, claim.operation]));
            }
        }
        None
    }

    /// What was seen was asked for by somebody.
    fn phantom(&self, key: &Key, rule: &str) -> Option<Violation> {
        self.claims.iter().filter(|claim| !claim.wrote && claim.position != Position::FIRST).find_map(
            |claim| {
                self.asked_before(claim.operation, claim.position).is_none().then(|| {
                    let text =
                        format!("operation {} saw what nobody had asked for by then", claim.operation.id);
                    Violation::new(rule, key, text, &[claim.operation])
                })
            },
        )
    }

    /// Whoever takes a lock finds it released, or takes it away from somebody who has it.
    fn taken_while_held(&self, key: &Key) -> Option<Violation> {
        self.taken.iter().filter(|(_, found)| found.0 != Fence(0)).find_map(|(taker, found)| {
            self.asked_before(taker, *found).is_none().then(|| {
                let last =
                    self.claims.iter().find(|claim| claim.wrote && claim.position == Position::held(found.0));
                let text = format!(
                    "operation {} took it as if the holder with token {} had released it or were silent, and \
                     nobody had done so",
                    taker.id, found.0
                );
                let mut shown = vec![*taker];
                shown.extend(last.map(|last| last.operation));
                Violation::new("taken-while-held", key, text, &shown)
            })
        })
    }

    /// Who is told that somebody else has changed it was overtaken by somebody.
    fn refused_by_nobody(&self, key: &Key) -> Option<Violation> {
        self.refused.iter().find_map(|(refused, left)| {
            // Its own position is what it asks for now; a refused operation asked for none.
            let beyond =
                if matches!(refused.call, Call::Release { .. }) { Position::free(left.0) } else { *left };
            let others = self.asked.range((std::ops::Bound::Excluded(beyond), std::ops::Bound::Unbounded));
            let overtaken = others.map(|(_, first)| *first).any(|first| first < refused.completed);
            (!overtaken).then(|| {
                let text = format!(
                    "operation {} was refused because somebody else had changed it, and nobody had",
                    refused.id
                );
                Violation::new("refused-by-nobody", key, text, &[refused])
            })
        })
    }

    /// When a position was first asked for, if that was before the operation ended.
    fn asked_before(&self, operation: &Operation, position: Position) -> Option<Micros> {
        self.asked.get(&position).copied().filter(|first| *first < operation.completed)
    }
}
