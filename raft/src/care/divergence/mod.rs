//! Finds a replica whose state is not that of the others, while the cluster runs.
//!
//! All nodes apply the same log, so at the same index all states are equal, unless memory, a disk or a
//! defect of ours changed one. At indexes that follow from the log itself every node forks its state,
//! which is O(1), hashes the fork beside the apply loop, and tells the leader. The leader compares what
//! was said of one index. A node that differs from a majority of the voters stops and is named; that may
//! be the leader. Without a majority nobody knows who is right: nobody stops, and an alarm says so.
//!
//! A node that lags, or that was given a snapshot, has nothing to say of an index, which is no failure.
//!
//! | module | what |
//! |---|---|
//! | `judge` | who said what of which index, and what follows |
//! | `compare` | the task on every node, and the leader's answer |

mod compare;
mod judge;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use tripod_state::ids::LogIndex;

pub(crate) use compare::Comparer;

/// What became of the comparisons of states, as this node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparisons {
    /// The last index at which this node's state was found to be that of a majority.
    pub last: LogIndex,
    /// Indexes at which this node's state was found so, since its start.
    pub agreed: u64,
    /// On the leader: states of nodes that were found to differ from the majority's, at each index anew, since its
    /// start.
    pub diverged: u64,
    /// On the leader: what an operator must know, until the nodes that it is about agree again.
    pub alarm: Option<String>,
}

/// What a state at one index is known by. Equal logs give equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// Of the entry at that index.
    pub(crate) term: u64,
    pub(crate) digest: u64,
}

/// What one node says of its own states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) node: u64,
    /// How the digests were made: [`DIGEST_VERSION`](tripod_state::State::DIGEST_VERSION).
    pub(crate) digest_version: u32,
    pub(crate) points: Vec<(u64, Fingerprint)>,
}

/// What the leader says to a [`Report`], point by point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) verdicts: Vec<(u64, Verdict)>,
}

/// What is known of one node's state at one index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// Too few nodes have spoken. Ask again.
    Open,
    /// This index will never be compared.
    Never,
    Agrees,
    Diverged {
        majority: Fingerprint,
        /// Whose state that is.
        of: Vec<u64>,
    },
}
