//! What a node has counted, for whoever shows figures.

use std::time::Duration;

use tripod_port::CallTally;
use tripod_raft::StateLimits;
use tripod_state::ids::TimeMs;

use super::Gateway;
use crate::keeper::GangCounts;
use crate::last_backup::LastBackup;
use crate::pulse::BeatCounts;

impl Gateway {
    /// Counts the calls of this node's clients, on all its ports.
    #[must_use]
    pub fn calls(&self) -> &CallTally {
        &self.counted
    }

    /// What this node has counted of heartbeats that it was asked to pass on.
    #[must_use]
    pub fn beats(&self) -> BeatCounts {
        self.pulse.counts()
    }

    /// What this node has counted of tasks that were given up and, while it led, of barriers.
    #[must_use]
    pub fn gangs(&self) -> GangCounts {
        self.keeper.tally().counts()
    }

    /// How long the leader has led that this node names, as this node knows.
    #[must_use]
    pub fn led_for(&self) -> Option<Duration> {
        self.keeper.led_for()
    }

    /// What the state may take while this node leads.
    #[must_use]
    pub fn state_limits(&self) -> StateLimits {
        self.state_limits
    }

    /// How many tasks have missed a heartbeat and were not given up yet; `None` unless this node leads.
    #[must_use]
    pub fn tasks_late(&self) -> Option<u64> {
        self.keeper.late()
    }

    /// When the last backup was made of which this node knows.
    #[must_use]
    pub fn last_backup(&self) -> &LastBackup {
        &self.backups
    }

    /// The time by which a leader stamps the log, as this node has it.
    #[must_use]
    pub fn now(&self) -> TimeMs {
        self.pulse.now()
    }
}
