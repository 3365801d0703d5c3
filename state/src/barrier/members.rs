//! Who takes part in a barrier.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::memory::{Weigh, of_list};

/// The members of a barrier id, fixed by its first instance and shared by all later ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Members {
    /// Every task of a job of that many tasks.
    Everyone(u32),
    /// Ascending and without duplicates.
    Listed(Arc<[TaskId]>),
}

impl Members {
    /// The set that a caller's list means.
    pub(crate) fn of(tasks: &[TaskId]) -> Self {
        let mut sorted = tasks.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        Self::Listed(sorted.into())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Everyone(tasks) => *tasks as usize,
            Self::Listed(tasks) => tasks.len(),
        }
    }

    pub(crate) fn contains(&self, task: TaskId) -> bool {
        match self {
            Self::Everyone(tasks) => u32::try_from(task.0).is_ok_and(|id| id < *tasks),
            Self::Listed(tasks) => tasks.binary_search(&task).is_ok(),
        }
    }

    /// The members in ascending order.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = TaskId> + '_> {
        match self {
            Self::Everyone(tasks) => Box::new((0..*tasks).map_while(|id| i32::try_from(id).ok()).map(TaskId)),
            Self::Listed(tasks) => Box::new(tasks.iter().copied()),
        }
    }
}

impl Weigh for Members {
    fn outside(&self) -> u64 {
        match self {
            Self::Everyone(_) => 0,
            Self::Listed(tasks) => of_list::<TaskId>(tasks.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_set() {
        let members = Members::of(&[TaskId(2), TaskId(0), TaskId(2)]);
        assert_eq!(members.iter().collect::<Vec<_>>(), [TaskId(0), TaskId(2)]);
        assert_eq!(members.len(), 2);
        assert!(members.contains(TaskId(2)) && !members.contains(TaskId(1)));
    }

    #[test]
    fn everyone_is_whoever_the_job_has() {
        let members = Members::Everyone(2);
        assert_eq!(members.iter().collect::<Vec<_>>(), [TaskId(0), TaskId(1)]);
        assert!(members.contains(TaskId(1)));
        assert!(!members.contains(TaskId(2)) && !members.contains(TaskId(-1)));
    }
}
