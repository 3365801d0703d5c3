//! The last increment of each caller, to recognise its retry.

use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::command::Answer;
use crate::ids::{DurationMs, Incarnation, Key, LogIndex, TimeMs};
use crate::limits::INCREMENTS_REMEMBERED;
use crate::memory::{Weigh, Weighed, of_map};

/// Bytes of a key that is remembered. Counters have short names, and what is remembered is replicated.
const KEY_BYTES_MAX: usize = 1 << 10;

/// How long after its increment a retry is taken for one. Retry policies give up after some ten
/// seconds; anything later is a call of its own.
const RETRY_WITHIN: DurationMs = DurationMs(30_000);

/// What callers were told of their last increments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Increments {
    last: Weighed<Incarnation, Increment>,
    /// The same in order of age, to forget the oldest. Derived.
    ages: OrdMap<LogIndex, Incarnation>,
}

/// One increment and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Increment {
    pub(crate) key: Key,
    pub(crate) by: i64,
    pub(crate) at: TimeMs,
    pub(crate) told: IncrementAnswer,
}

impl Weigh for Increment {
    fn outside(&self) -> u64 {
        self.key.outside().saturating_add(self.told.value.outside())
    }
}

/// What the answer said besides the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct IncrementAnswer {
    pub(crate) value: Bytes,
    pub(crate) version: u64,
    pub(crate) modified: LogIndex,
}

impl Increments {
    /// The answer that a retry at `now` has lost, if the caller's last increment was the same. No
    /// protocol numbers its increments: a retry whose first attempt never came, right after an equal
    /// increment, cannot be told from it.
    pub(crate) fn lost_answer(&self, caller: Incarnation, key: &Key, by: i64, now: TimeMs) -> Option<Answer> {
        let last = self.last.get(&caller)?;
        if last.key != *key || last.by != by || now > last.at.plus(RETRY_WITHIN) {
            return None;
        }
        let IncrementAnswer { value, version, modified } = last.told.clone();
        Some(Answer::Value { key: key.clone(), value, version, modified })
    }

    /// Remembers a caller's last increment, and forgets the oldest one beyond the limit.
    pub(crate) fn note(&mut self, caller: Incarnation, increment: Increment) {
        if increment.key.as_str().len() > KEY_BYTES_MAX {
            self.forget(caller);
            return;
        }
        let modified = increment.told.modified;
        if let Some(earlier) = self.last.insert(caller, increment) {
            self.ages.remove(&earlier.told.modified);
        }
        self.ages.insert(modified, caller);
        while self.last.len() > INCREMENTS_REMEMBERED {
            let (oldest, caller) =
                self.ages.get_min().map(|(index, caller)| (*index, *caller)).expect("full");
            self.ages.remove(&oldest);
            self.last.remove(&caller);
        }
    }

    /// An older increment of the caller must not be taken for one that is not remembered.
    fn forget(&mut self, caller: Incarnation) {
        if let Some(earlier) = self.last.remove(&caller) {
            self.ages.remove(&earlier.told.modified);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Incarnation, &Increment)> {
        self.last.iter()
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.last.bytes().saturating_add(of_map::<LogIndex, Incarnation>(self.ages.len()))
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.last.recounted().saturating_add(of_map::<LogIndex, Incarnation>(self.ages.len()))
    }

    pub(crate) fn len(&self) -> usize {
        self.last.len()
    }

    /// Puts back one of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, caller: Incarnation, increment: Increment) -> bool {
        let ascending = self.last.get_max().is_none_or(|(last, _)| *last < caller);
        self.note(caller, increment);
        ascending
    }
}
