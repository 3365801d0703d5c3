//! What gates count, so that people can see what would be refused before it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Caller, Decision, Mode, Reason, Rpc};

/// Kinds of refusals that are counted each by itself: who, what, why. Whoever can prove many names could make any number of them.
pub const KINDS_COUNTED_MAX: usize = 4_096;

/// What the gates of a process have decided since it started.
#[derive(Debug, Default)]
pub struct Tally {
    allowed: AtomicU64,
    in_apply: AtomicU64,
    refused: AtomicU64,
    would_refuse: AtomicU64,
    kinds: Mutex<BTreeMap<Kind, u64>>,
    uncounted: AtomicU64,
}

/// A caller's text, what it called, why that is refused, and whether it was.
type Kind = (String, Option<Rpc>, Reason, bool);

/// How often something was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusals {
    /// To whom; see [`Caller`]'s text.
    pub caller: String,
    /// What; `None` if it was a path that is no RPC. Such paths are anybody's text, and are not kept.
    pub rpc: Option<Rpc>,
    /// Why.
    pub reason: Reason,
    /// It was refused; else it would have been, and was made.
    pub was_refused: bool,
    /// How often.
    pub count: u64,
}

impl Tally {
    pub(crate) fn note(&self, mode: Mode, caller: &Caller, rpc: Option<Rpc>, decision: Decision) {
        let add = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        match decision {
            Decision::Allowed => {
                add(&self.allowed);
            }
            Decision::InApply(_) => {
                add(&self.in_apply);
            }
            Decision::Refused(reason) => {
                let was_refused = mode == Mode::Enforce;
                add(if was_refused { &self.refused } else { &self.would_refuse });
                let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
                let is_full = kinds.len() >= KINDS_COUNTED_MAX;
                let kind = (caller.to_string(), rpc, reason, was_refused);
                match kinds.get_mut(&kind) {
                    Some(count) => *count += 1,
                    None if is_full => {
                        add(&self.uncounted);
                    }
                    None => {
                        kinds.insert(kind, 1);
                    }
                }
            }
        }
    }

    /// Calls that were made, and need no further check.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Calls that are made if they pass what is checked later.
    #[must_use]
    pub fn in_apply(&self) -> u64 {
        self.in_apply.load(Ordering::Relaxed)
    }

    /// Calls that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Calls that were made, and would have been refused.
    #[must_use]
    pub fn would_refuse(&self) -> u64 {
        self.would_refuse.load(Ordering::Relaxed)
    }

    /// Refusals that are of none of the kinds that are counted by themselves, as there was no room for more.
    #[must_use]
    pub fn uncounted(&self) -> u64 {
        self.uncounted.load(Ordering::Relaxed)
    }

    /// All refusals that are counted by kinds, by callers and RPCs.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusals> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let refusals = kinds.iter().map(|((caller, rpc, reason, was_refused), count)| Refusals {
            caller: caller.clone(),
            rpc: *rpc,
            reason: *reason,
            was_refused: *was_refused,
            count: *count,
        });
        refusals.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_kinds_as_long_as_there_is_room() {
        let tally = Tally::default();
        let refused = Decision::Refused(Reason::NoIdentity);
        let callers = (0..=KINDS_COUNTED_MAX).map(|job| Caller::Listener(format!("j{job}").parse().unwrap()));
        for caller in callers {
            tally.note(Mode::Rehearse, &caller, None, refused);
        }
        assert_eq!((tally.would_refuse(), tally.uncounted()), (KINDS_COUNTED_MAX as u64 + 1, 1));
        assert_eq!(tally.refusals().len(), KINDS_COUNTED_MAX);
        let known = Caller::Listener("j0".parse().unwrap());
        tally.note(Mode::Rehearse, &known, None, refused);
        let counted = tally.refusals().into_iter().find(|refusals| refusals.caller == "listener/j0").unwrap();
        assert_eq!((counted.count, counted.was_refused, tally.refused()), (2, false, 0));
    }
}
