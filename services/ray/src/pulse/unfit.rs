//! What the leader has heard of objects that cannot come to stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tripod_state::ray;
use tripod_state::ray::ids::{ObjectId, StoreId};

/// How long a store's word counts: it may reach again tomorrow what it does not reach now. A task that finds out that
/// nothing has changed costs one more word.
const COUNTS_FOR: Duration = Duration::from_secs(600);
/// Words that are remembered; of more, those about the oldest objects are forgotten.
const UNFIT_MAX: usize = 4096;

/// Of one job.
#[derive(Debug, Default)]
pub(super) struct Unfits {
    words: BTreeMap<(ObjectId, StoreId), Instant>,
    /// All words as a planner reads them, and until when they are right. It is asked for with every order.
    shown: Option<(Arc<ray::Unfit>, Option<Instant>)>,
}

impl Unfits {
    pub(super) fn note(&mut self, object: ObjectId, store: StoreId) {
        self.words.insert((object, store), Instant::now() + COUNTS_FOR);
        if self.words.len() > UNFIT_MAX {
            self.words.pop_first();
        }
        self.shown = None;
    }

    /// What counts now.
    pub(super) fn now(&mut self) -> Arc<ray::Unfit> {
        let now = Instant::now();
        match &self.shown {
            Some((shown, until)) if until.is_none_or(|until| now < until) => Arc::clone(shown),
            _ => {
                self.words.retain(|_, until| now < *until);
                let shown = Arc::new(self.words.keys().copied().collect());
                self.shown = Some((Arc::clone(&shown), self.words.values().min().copied()));
                shown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_word_counts_for_a_while_and_there_are_never_too_many() {
        let mut unfits = Unfits::default();
        let (early, late) = ((ObjectId(7), StoreId(1)), (ObjectId(3), StoreId(2)));
        let told = |unfits: &mut Unfits, pairs: &[(ObjectId, StoreId)]| {
            assert_eq!(*unfits.now(), pairs.iter().copied().collect());
        };
        told(&mut unfits, &[]);
        unfits.note(early.0, early.1);
        told(&mut unfits, &[early]);
        tokio::time::advance(COUNTS_FOR / 2).await;
        unfits.note(late.0, late.1);
        told(&mut unfits, &[early, late]);
        tokio::time::advance(COUNTS_FOR / 2).await;
        told(&mut unfits, &[late]);
        tokio::time::advance(COUNTS_FOR / 2).await;
        told(&mut unfits, &[]);
        for object in 0..2 * UNFIT_MAX as u64 {
            unfits.note(ObjectId(object), StoreId(1));
        }
        assert_eq!(unfits.words.len(), UNFIT_MAX);
    }
}
