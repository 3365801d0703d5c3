//! A set of tasks as ranges.

use serde::{Deserialize, Serialize};

use crate::events::RANGES_MAX;
use crate::ids::TaskId;

/// Tasks as ranges, ascending, that neither meet nor touch: at most [`RANGES_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tasks(Vec<(TaskId, TaskId)>);

impl Tasks {
    /// One task.
    #[must_use]
    pub fn of(task: TaskId) -> Self {
        Self(vec![(task, task)])
    }

    /// The first and the last of each range.
    #[must_use]
    pub fn ranges(&self) -> &[(TaskId, TaskId)] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn contains(&self, task: TaskId) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= task);
        behind.checked_sub(1).is_some_and(|at| self.0[at].1 >= task)
    }

    /// Adds one; `false` if that takes one range too many.
    pub(crate) fn add(&mut self, task: TaskId) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= task);
        let joins_next =
            self.0.get(behind).is_some_and(|(first, _)| i64::from(first.0) == i64::from(task.0) + 1);
        if let Some(before) = behind.checked_sub(1) {
            let last = self.0[before].1;
            if last >= task {
                return true;
            }
            if i64::from(last.0) + 1 == i64::from(task.0) {
                self.0[before].1 = if joins_next { self.0.remove(behind).1 } else { task };
                return true;
            }
        }
        if joins_next {
            self.0[behind].0 = task;
        } else if self.0.len() < RANGES_MAX {
            self.0.insert(behind, (task, task));
        } else {
            return false;
        }
        true
    }

    /// Whether they are as they must be.
    pub(crate) fn is_legal(&self) -> bool {
        let apart = |pair: &[(TaskId, TaskId)]| i64::from(pair[0].1.0) + 1 < i64::from(pair[1].0.0);
        let rightly = |(first, last): &(TaskId, TaskId)| 0 <= first.0 && first <= last;
        self.0.len() <= RANGES_MAX && self.0.iter().all(rightly) && self.0.windows(2).all(apart)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_what_was_added(added in prop::collection::vec(0_i32..60, 0..80)) {
            let mut tasks = Tasks::default();
            let mut set = BTreeSet::new();
            for task in added {
                prop_assert!(tasks.add(TaskId(task)));
                set.insert(task);
                prop_assert!(tasks.is_legal(), "{tasks:?}");
            }
            let all: Vec<i32> = tasks.0.iter().flat_map(|(first, last)| first.0..=last.0).collect();
            prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
            prop_assert!((0..60).all(|task| tasks.contains(TaskId(task)) == set.contains(&task)));
        }
    }

    #[test]
    fn there_are_no_more_ranges_than_the_bound_and_tasks_between_them_still_fit() {
        let mut tasks = Tasks::default();
        let most = i32::try_from(RANGES_MAX).unwrap();
        assert!((0..most).all(|task| tasks.add(TaskId(2 * task))));
        assert!(!tasks.add(TaskId(2 * most)));
        assert!(tasks.add(TaskId(1)) && tasks.add(TaskId(2 * most)) && !tasks.add(TaskId(i32::MAX - 1)));
        assert!(Tasks::of(TaskId(i32::MAX)).contains(TaskId(i32::MAX)));
        assert!(!Tasks(vec![(TaskId(3), TaskId(2))]).is_legal());
    }
}
