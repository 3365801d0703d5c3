//! How old what a node shows is: since when it knows of entries of the log that are not in it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use tripod_state::ids::LogIndex;

/// Indexes that are remembered; of more, two become one.
const KNOWN_MAX: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// Up to where the log was known to be committed, and since when, ascending.
    known: VecDeque<(LogIndex, Instant)>,
}

impl Behind {
    /// Notes up to where the log is known to be committed.
    pub(crate) fn note(&mut self, committed: LogIndex, now: Instant) {
        if self.known.back().is_some_and(|(last, _)| *last >= committed) {
            return;
        }
        if self.known.len() == KNOWN_MAX {
            // Rather too old than too new: the earlier time of two.
            let pairs = self.known.make_contiguous().chunks(2);
            self.known = pairs.map(|pair| (pair[pair.len() - 1].0, pair[0].1)).collect();
        }
        self.known.push_back((committed, now));
    }

    /// For how long an entry has been known that is not in a state up to `shown`. What is in it is forgotten.
    pub(crate) fn of(&mut self, shown: LogIndex, now: Instant) -> Duration {
        while self.known.front().is_some_and(|(index, _)| *index <= shown) {
            self.known.pop_front();
        }
        self.known.front().map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(*since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_shown_is_as_old_as_the_first_entry_that_is_not_in_it() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut behind = Behind::default();
        let of = |behind: &mut Behind, shown, seconds| behind.of(LogIndex(shown), at(seconds)).as_secs();
        behind.note(LogIndex(10), at(0));
        assert_eq!(of(&mut behind, 10, 5), 0, "all that is known is in it");
        behind.note(LogIndex(12), at(6));
        behind.note(LogIndex(12), at(7));
        behind.note(LogIndex(20), at(8));
        assert_eq!(of(&mut behind, 11, 9), 3);
        assert_eq!(of(&mut behind, 12, 9), 1, "it comes nearer");
        assert_eq!(of(&mut behind, 19, 30), 22);
        assert_eq!(of(&mut behind, 20, 30), 0);
    }

    #[tokio::test]
    async fn a_node_that_stands_still_is_never_told_younger_than_it_is() {
        let begin = Instant::now();
        let mut behind = Behind::default();
        for second in 1..=1_000 {
            behind.note(LogIndex(second), begin + Duration::from_secs(second));
            assert!(behind.known.len() <= KNOWN_MAX);
        }
        let now = begin + Duration::from_secs(1_000);
        assert_eq!(behind.of(LogIndex(0), now).as_secs(), 999);
        assert!(behind.of(LogIndex(499), now).as_secs() >= 500);
    }
}
