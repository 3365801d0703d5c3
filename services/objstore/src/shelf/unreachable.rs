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
const TOLD_FOR: Duration = Duration::from_secs(60);
/// Objects that are remembered; of more, the oldest are forgotten.
const OBJECTS_MAX: usize = 4096;

/// What is told of which objects.
#[derive(Debug, Default)]
pub(super) struct Unreachable(BTreeMap<ObjectId, Word>);

#[derive(Debug)]
struct Word {
    text: Arc<str>,
    /// `None`: the scheduler has not heard of it.
    until: Option<Instant>,
}

impl Unreachable {
    /// Why an object that is not here does not come.
    pub(super) fn why(&mut self, id: ObjectId) -> Option<Arc<str>> {
        let word = self.0.get(&id)?;
        if word.until.is_some_and(|until| until <= Instant::now()) {
            self.0.remove(&id);
            return None;
        }
        Some(Arc::clone(&word.text))
    }

    pub(super) fn forget(&mut self, id: ObjectId) {
        self.0.remove(&id);
    }

    fn note(&mut self, id: ObjectId, text: Arc<str>, until: Option<Instant>) {
        self.0.insert(id, Word { text, until });
        if self.0.len() > OBJECTS_MAX {
            self.0.pop_first();
        }
    }
}

impl Shelf {
    /// No source of the object that was being fetched could be reached for long: whoever waits for it is told so, and
    /// the scheduler.
    pub(crate) fn give_up(&self, id: ObjectId, life: Life, why: &str) {
        let mut inner = self.inner.lock();
        if !inner.table.abandon(id, life) {
            // A process here writes it.
            return;
        }
        inner.unreachable.note(id, why.into(), None);
        inner.waiting.wake(id, None);
        // Under the lock, so that reports of one object have the order of what they are about.
        self.report_failure(id, FetchFailure::Unreachable);
    }

    /// The scheduler has heard that an object does not come.
    pub(crate) fn heard_of(&self, id: ObjectId) {
        if let Some(word) = self.inner.lock().unreachable.0.get_mut(&id) {
            word.until = Some(Instant::now() + TOLD_FOR);
        }
    }
}

impl super::Inner {
    /// Another id for an object that does not come: who waits for that is told the same. Whether it is such an object.
    pub(super) fn alias_unreachable(&mut self, alias: ObjectId, canonical: ObjectId) -> bool {
        let Some(text) = self.unreachable.why(canonical) else { return false };
        self.unreachable.note(alias, text, Some(Instant::now() + TOLD_FOR));
        self.waiting.wake(alias, None);
        true
    }
}
