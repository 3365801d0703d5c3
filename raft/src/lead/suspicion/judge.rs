//! Who stands for election when a leader is lost, and after whom.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Where a log ends. The longest one is the greatest: what any majority may have acknowledged ends no later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    /// Of the leader that appended the last entry.
    pub(super) term: u64,
    pub(super) node: u64,
    pub(super) index: u64,
}

/// How many stand before `this` does, of those that may: the longest log stands first, of equal ones that of the
/// lowest id. `None`: it does not stand.
pub(super) fn turn(this: u64, standing: &BTreeMap<u64, End>) -> Option<u32> {
    let mine = standing.get(&this)?;
    let before = standing.iter().filter(|(node, end)| *end > mine || (*end == mine && **node < this));
    u32::try_from(before.count()).ok()
}

/// Says no to whoever did something too often in a while.
#[derive(Debug)]
pub(super) struct Budget {
    most: usize,
    within: Duration,
    times: VecDeque<Instant>,
}

impl Budget {
    pub(super) fn new(most: usize, within: Duration) -> Self {
        Self { most, within, times: VecDeque::new() }
    }

    /// Takes one of those that are left.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        while self.times.front().is_some_and(|first| now.duration_since(*first) >= self.within) {
            self.times.pop_front();
        }
        let is_left = self.times.len() < self.most;
        if is_left {
            self.times.push_back(now);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(term: u64, index: u64) -> End {
        End { term, node: 1, index }
    }

    #[test]
    fn the_longest_log_stands_first_and_then_the_next_one() {
        let standing = BTreeMap::from([(1, end(6, 90)), (2, end(7, 40)), (4, end(7, 41)), (5, end(7, 40))]);
        let turns = |node| turn(node, &standing);
        assert_eq!([4, 2, 5, 1].map(turns), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(turns(3), None, "it is not among them");
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_comes_back_when_its_time_is_over() {
        let mut budget = Budget::new(2, Duration::from_secs(60));
        assert!(budget.take(Instant::now()));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(budget.take(Instant::now()) && !budget.take(Instant::now()));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(budget.take(Instant::now()) && !budget.take(Instant::now()));
    }
}
