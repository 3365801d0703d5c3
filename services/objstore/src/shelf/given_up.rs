//! Objects that could not be fetched for so long that those who wait for them are told so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{FetchFailure, Shelf};
use crate::ids::ObjectId;
use crate::table::Life;

/// How long after the scheduler has heard of it those who ask are still told: who asked the scheduler before that is not
/// brought the object, and may come here a moment later. Who asks after that is brought it anew.
const UNREACHABLE_FOR: Duration = Duration::from_secs(60);
/// Room comes back sooner than a path: who is told that there is none drops something, and asks again.
const FULL_FOR: Duration = Duration::from_secs(10);
/// Objects that are remembered; of more, the oldest are forgotten.
const OBJECTS_MAX: usize = 4096;

/// Why an object does not come.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Why {
    /// No place that has it could be reached.
    #[error("{0}")]
    Unreachable(Arc<str>),
    /// There was no room for it here.
    #[error("{0}")]
    Full(Arc<str>),
}

impl Why {
    fn told_for(&self) -> Duration {
        match self {
            Self::Unreachable(_) => UNREACHABLE_FOR,
            Self::Full(_) => FULL_FOR,
        }
    }
}

/// What is told of which objects.
#[derive(Debug, Default)]
pub(super) struct GivenUp(BTreeMap<ObjectId, Word>);

#[derive(Debug)]
struct Word {
    why: Why,
    /// `None`: the scheduler has not heard of it.
    until: Option<Instant>,
}

impl GivenUp {
    /// Why an object that is not here does not come.
    pub(super) fn why(&mut self, id: ObjectId) -> Option<Why> {
        let word = self.0.get(&id)?;
        if word.until.is_some_and(|until| until <= Instant::now()) {
            self.0.remove(&id);
            return None;
        }
        Some(word.why.clone())
    }

    pub(super) fn forget(&mut self, id: ObjectId) {
        self.0.remove(&id);
    }

    fn note(&mut self, id: ObjectId, why: Why, until: Option<Instant>) {
        self.0.insert(id, Word { why, until });
        if self.0.len() > OBJECTS_MAX {
            self.0.pop_first();
        }
    }
}

impl Shelf {
    /// The object that was being fetched could not come for long: whoever waits for it is told so, and the scheduler.
    pub(crate) fn give_up(&self, id: ObjectId, life: Life, why: Why) {
        let mut inner = self.inner.lock();
        if !inner.table.abandon(id, life) {
            // A process here writes it.
            return;
        }
        inner.given_up.note(id, why, None);
        inner.waiting.wake(id, None);
        // Under the lock, so that reports of one object have the order of what they are about.
        self.report_failure(id, FetchFailure::GivenUp);
    }

    /// The scheduler has heard that an object does not come.
    pub(crate) fn heard_of(&self, id: ObjectId) {
        if let Some(word) = self.inner.lock().given_up.0.get_mut(&id) {
            word.until = Some(Instant::now() + word.why.told_for());
        }
    }
}

impl super::Inner {
    /// Another id for an object that does not come: who waits for that is told the same. Whether it is such an object.
    pub(super) fn alias_given_up(&mut self, alias: ObjectId, canonical: ObjectId) -> bool {
        let Some(why) = self.given_up.why(canonical) else { return false };
        let until = Instant::now() + why.told_for();
        self.given_up.note(alias, why, Some(until));
        self.waiting.wake(alias, None);
        true
    }
}
