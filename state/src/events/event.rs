//! An event.

use serde::{Deserialize, Serialize};

use crate::events::{Tasks, What};
use crate::ids::{LogIndex, TaskId, TimeMs};

/// What an event takes, besides its texts and ranges, in every count of bytes that is a bound.
const BASE_BYTES: u64 = 128;
const RANGE_BYTES: u64 = 8;

/// Where a change of a ring stands among all changes of all rings: ascending in the order in which they happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The log entry.
    pub index: LogIndex,
    /// Among those of one log entry. From 1 in a job's ring; 0 is the term's.
    pub sequence: u32,
}

/// Something that happened, or several things of one kind within a second.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// Among all events of its ring, from 1: it is the same in every answer.
    pub number: u64,
    pub what: What,
    /// Which tasks of the job; empty: it concerns none in particular.
    pub tasks: Tasks,
    /// How many are told by this event.
    pub times: u32,
    /// Where the first one of them stands, and the last one: it has changed until then.
    pub first: Position,
    pub last: Position,
    /// The log's time of both.
    pub at: TimeMs,
    pub until: TimeMs,
}

impl Event {
    /// Bytes that it counts for in a ring.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        BASE_BYTES + self.what.text_bytes() + RANGE_BYTES * self.tasks.ranges().len() as u64
    }

    /// Takes another one in, if there is room for its task.
    pub(crate) fn merge(&mut self, what: &What, task: Option<TaskId>, last: Position, until: TimeMs) -> bool {
        if task.is_some_and(|task| !self.tasks.add(task)) {
            return false;
        }
        self.what.merge(what);
        self.times = self.times.saturating_add(1);
        (self.last, self.until) = (last, until);
        true
    }

    /// Whether a snapshot may hold it.
    pub(crate) fn is_legal(&self) -> bool {
        self.first <= self.last
            && self.at <= self.until
            && self.times > 0
            && self.tasks.is_legal()
            && self.what.is_legal()
    }
}
