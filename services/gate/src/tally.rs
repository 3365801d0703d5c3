//! What gates count, so that people can see what would be refused before it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Caller, Decision, Port, Reason, Rpc};

/// Kinds of refusals that are counted each by itself: who, what, why. Whoever can prove many names could make any number of them.
pub const KINDS_COUNTED_MAX: usize = 4_096;

/// Refusals of one caller for one reason are told so often at most.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Callers with reasons of which it is remembered when they were told.
const TOLD_MAX: usize = 1_024;

/// What the gates of a process have decided since it started.
#[derive(Debug, Default)]
pub struct Tally {
    allowed: AtomicU64,
    in_apply: AtomicU64,
    refused: AtomicU64,
    would_refuse: AtomicU64,
    kinds: Mutex<BTreeMap<Kind, u64>>,
    uncounted: AtomicU64,
    /// When it was last told of refusals.
    told: Mutex<BTreeMap<(String, Reason), Instant>>,
}

/// A refusal that was not told of lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Where.
    pub at: Port,
    /// To whom; see [`Caller`]'s text.
    pub caller: String,
    /// Whether a token has proved who that is.
    pub is_by_token: bool,
    /// What; `None` if it was a path that is no RPC.
    pub rpc: Option<Rpc>,
    /// Why.
    pub reason: Reason,
    /// It was refused; else it would have been, and was made.
    pub was_refused: bool,
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
    /// Counts a call that is made.
    pub(crate) fn note_made(&self, decision: Decision) {
        let counter = match decision {
            Decision::Allowed => &self.allowed,
            Decision::InApply(_) => &self.in_apply,
            Decision::Refused(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one that is refused, or would be. Whether that is news.
    pub(crate) fn note_refused(
        &self,
        was_refused: bool,
        caller: &Caller,
        rpc: Option<Rpc>,
        reason: Reason,
    ) -> bool {
        let total = if was_refused { &self.refused } else { &self.would_refuse };
        total.fetch_add(1, Ordering::Relaxed);
        let caller = caller.to_string();
        let is_news = self.is_news(&caller, reason);
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = kinds.len() >= KINDS_COUNTED_MAX;
        let kind = (caller, rpc, reason, was_refused);
        match kinds.get_mut(&kind) {
            Some(count) => *count += 1,
            None if is_full => {
                self.uncounted.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                kinds.insert(kind, 1);
            }
        }
        is_news
    }

    /// Whether nothing was told for a minute of refusals to that caller for that reason.
    fn is_news(&self, caller: &str, reason: Reason) -> bool {
        let now = Instant::now();
        let is_old = |at: &Instant| now.duration_since(*at) >= TOLD_EVERY;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            told.retain(|_, at| !is_old(at));
        }
        let key = (caller.to_owned(), reason);
        if told.get(&key).is_some_and(|at| !is_old(at)) {
            return false;
        }
        // Names without end are counted all the same.
        let has_room = told.len() < TOLD_MAX || told.contains_key(&key);
        if has_room {
            told.insert(key, now);
        }
        has_room
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
        let refuse = |caller: &Caller| tally.note_refused(false, caller, None, Reason::NoIdentity);
        let callers = (0..=KINDS_COUNTED_MAX).map(|job| Caller::Listener(format!("j{job}").parse().unwrap()));
        let told = callers.filter(|caller| refuse(caller)).count();
        assert_eq!(told, TOLD_MAX, "not more are remembered");
        assert_eq!((tally.would_refuse(), tally.uncounted()), (KINDS_COUNTED_MAX as u64 + 1, 1));
        assert_eq!(tally.refusals().len(), KINDS_COUNTED_MAX);
        let known = Caller::Listener("j0".parse().unwrap());
        assert!(!refuse(&known), "it was told a moment ago");
        let counted = tally.refusals().into_iter().find(|refusals| refusals.caller == "listener/j0").unwrap();
        assert_eq!((counted.count, counted.was_refused, tally.refused()), (2, false, 0));
    }

    #[test]
    fn refusals_are_told_of_by_caller_and_reason() {
        let tally = Tally::default();
        let told = |job: &str, reason| {
            tally.note_refused(true, &Caller::Listener(job.parse().unwrap()), None, reason)
        };
        assert!(told("a", Reason::Role) && told("a", Reason::OtherJob) && told("b", Reason::Role));
        assert!(!told("a", Reason::Role) && !told("b", Reason::Role));
    }
}
