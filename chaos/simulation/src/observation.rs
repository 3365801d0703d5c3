//! What the simulation sees of a node, in plain numbers: invariants judge these, never a node.

use std::fmt;

pub(crate) use tripod_raft::LogLine;
use tripod_state::ids::{LogIndex, NodeId, Term};

/// Milliseconds of simulated time since the simulation began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SimTime(pub u64);

impl SimTime {
    /// How much later than `earlier` this is; zero if it is not later.
    #[must_use]
    pub fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1000, self.0 % 1000)
    }
}

/// Counts the starts of one node, from 1: what it held in memory is another thing after each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life(pub(crate) u32);

/// A node as it shows itself at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) node: NodeId,
    pub(crate) life: Life,
    pub(crate) leads: bool,
    pub(crate) term: Term,
    pub(crate) last_log: LogIndex,
    pub(crate) committed: LogIndex,
    pub(crate) applied: LogIndex,
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Violation {
    /// The rule, in the words of `docs/reliability.md`.
    pub rule: String,
    /// When it was seen, in milliseconds of simulated time.
    pub at_ms: u64,
    /// What was seen, in plain words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.rule, SimTime(self.at_ms), self.what)
    }
}
