//! How long nodes may be silent.

use std::time::Duration;

use tripod_gateway::Rules;

use crate::pulse::Peer;

/// The rules about silence. The default is upstream's; tests shorten it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A node that has sent nothing for so long is silent: ten of its heartbeats, or six of a 2.10.
    pub ttl: Duration,
    /// The least time that everybody has after an election: nodes must find another coordinator first.
    pub failover_min: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(30), failover_min: Duration::from_secs(60) }
    }
}

impl Patience {
    /// How often the timers are looked at.
    pub(super) fn tick(&self) -> Duration {
        (self.ttl / 60).clamp(Duration::from_millis(10), Duration::from_millis(500))
    }

    /// How often those who are watched are compared with the state.
    pub(super) fn refresh(&self) -> Duration {
        (self.ttl / 10).min(Duration::from_secs(1))
    }
}

impl Rules for Patience {
    type Peer = Peer;

    fn ttl(&self, _peers: usize) -> Duration {
        self.ttl
    }

    fn ttl_ms(&self, _peer: Peer, _peers: usize) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }

    fn allowance(&self, _peer: Peer, _regular: bool, _peers: usize) -> Duration {
        self.ttl
    }
}
