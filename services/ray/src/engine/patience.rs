//! How long peers may be silent.

use std::time::Duration;

use tripod_gateway::Rules;
use tripod_state::ray::Peer;
use tripod_state::ray::ids::{StoreId, WorkerId};

/// Heartbeats of one job that a leader is to hear in a second: with more peers each beats more rarely.
const PEERS_PER_SECOND: u64 = 100;
/// A driver that does not beat is heard only when it calls. It may compute for hours between two calls, and nothing
/// waits for its end: its references are nobody's.
const QUIET: Duration = Duration::from_secs(24 * 3600);

/// The rules about silence. The default is for clusters; tests shorten it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The shortest time to live. Three seconds are three beats that may be lost, and long enough for a busy
    /// machine.
    pub ttl_min: Duration,
    /// What is added to it before a peer is given up: a beat may have been on its way.
    pub grace: Duration,
    /// The least time that everybody has after an election: clients of a node that died must find another first.
    pub failover_min: Duration,
    /// How often stores are asked what they hold.
    pub reconcile_every: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            ttl_min: Duration::from_secs(3),
            grace: Duration::from_secs(3),
            failover_min: Duration::from_secs(15),
            reconcile_every: Duration::from_secs(60),
        }
    }
}

impl Patience {
    /// What a peer is told: up to twice the time to live, and different for each, so that they do not beat all at
    /// once after an election.
    fn ttl_of(&self, peer: Peer, peers: usize) -> Duration {
        let seed = match peer {
            Peer::Worker(WorkerId(id)) => id.wrapping_mul(2),
            Peer::Store(StoreId(id)) => id.wrapping_mul(2).wrapping_add(1),
        };
        // Neighbouring ids are spread over the whole range: the multiplier is odd and near the golden ratio.
        let spread = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        let ttl = self.ttl(peers);
        ttl + ttl * u32::try_from(spread).expect("ten bits") / 1024
    }

    /// How long it may be silent after an election, at least.
    pub(crate) fn after_election(&self, peers: usize) -> Duration {
        self.failover_min.max(self.ttl(peers) * 3)
    }

    /// How often peers that do not beat are asked for a sign of life: as often as few others beat.
    pub(crate) fn probe_every(&self) -> Duration {
        self.ttl_min / 3
    }

    /// How often the timers are looked at.
    pub(crate) fn tick(&self) -> Duration {
        (self.ttl_min / 20).clamp(Duration::from_millis(10), Duration::from_millis(200))
    }
}

impl Rules for Patience {
    type Peer = Peer;

    fn ttl(&self, peers: usize) -> Duration {
        self.ttl_min.max(Duration::from_millis(peers as u64 * 1000 / PEERS_PER_SECOND))
    }

    fn ttl_ms(&self, peer: Peer, peers: usize) -> u64 {
        self.ttl_of(peer, peers).as_millis().try_into().unwrap_or(u64::MAX)
    }

    fn allowance(&self, peer: Peer, regular: bool, peers: usize) -> Duration {
        if regular { self.ttl_of(peer, peers) + self.grace } else { QUIET }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_peers_beat_more_rarely() {
        let patience = Patience::default();
        assert_eq!(patience.ttl(300), Duration::from_secs(3));
        assert_eq!(patience.ttl(1000), Duration::from_secs(10));
        assert_eq!(patience.after_election(1000), Duration::from_secs(30));
    }

    #[test]
    fn times_to_live_differ_by_up_to_as_much_again() {
        let patience = Patience::default();
        let told: Vec<u64> = (0..100).map(|id| patience.ttl_ms(Peer::Worker(WorkerId(id)), 1)).collect();
        assert!(told.iter().all(|ttl| (3000..6000).contains(ttl)), "{told:?}");
        assert!(told.iter().any(|ttl| *ttl < 3500) && told.iter().any(|ttl| *ttl > 5500), "{told:?}");
    }
    /// The number is that of the walk-through of a new operator. Whoever changes a time changes the pages that tell it.
    #[test]
    fn n37_the_pages_tell_how_long_a_dead_worker_is_shown_busy() {
        let patience = Patience::default();
        let (worker, seconds) = (Peer::Worker(WorkerId(0)), |time: Duration| time.as_secs());
        let least = seconds(patience.allowance(worker, true, 300));
        let most = seconds(patience.ttl_min * 2 + patience.grace);
        let told = format!("{least} to {most} s");
        let elected = format!("at least {} s", seconds(patience.after_election(300)));
        for page in [
            include_str!("../../../../docs/clients/ray.md"),
            include_str!("../../../../docs/runbooks/tasks.md"),
        ] {
            assert!(
                page.contains(&told) && page.contains(&elected),
                "{told}, or {elected}, is not in {page}"
            );
        }
    }
}
