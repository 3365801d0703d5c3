//! What a run promises beyond what its history says.

use crate::history::Micros;

/// What checkers must know of the workload and of the cluster's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Steps that the search for a linear order may take for each key before it gives up.
    pub steps_per_key: u64,
    /// `None`: heartbeats are not judged.
    pub heartbeat: Option<HeartbeatRule>,
    /// How soon an arrival at a barrier counts when nothing is disturbed: what it is compared with when a
    /// barrier says that a task did not come. `None`: only what others saw of the arrival is proof.
    pub arrival_settles: Option<Micros>,
    /// Heartbeats of an old life are answered as if nothing were wrong, though they count for nothing. So it
    /// is, as upstream, in jobs whose tasks may come back.
    pub old_beats_tolerated: bool,
    /// Heartbeats are answered by whoever takes itself for the leader. One that was stopped or cut off knows
    /// nothing of newer lives while the fault lasts and for so long after it, and what it answers then to an
    /// old life is no proof. `None`: every answer is.
    pub deposed_leader: Option<Micros>,
    /// `None`: how long reads take is not judged.
    pub release: Option<ReleaseRule>,
}

/// When a silent task is declared dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatRule {
    /// The job's time-out. A task whose beats come closer together than this is never declared dead.
    pub timeout: Micros,
    /// A silent task is declared dead within the time-out and this, counted anew from the end of every fault:
    /// an election starts all timers again. Also the slack for whoever looks.
    pub bound: Micros,
}

/// How soon a read ends that has nothing to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseRule {
    /// From the later one of these on: the read was sent, a write of its key was acknowledged.
    pub bound: Micros,
    /// How long after a fault clients may still look for a node that answers.
    pub aftermath: Micros,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            steps_per_key: 5_000_000,
            heartbeat: None,
            arrival_settles: None,
            old_beats_tolerated: false,
            deposed_leader: None,
            release: None,
        }
    }
}
