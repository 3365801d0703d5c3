//! What an agent says of itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tripod_port::Budget;

use crate::calls::Kind;
use crate::meters::Meters;
use crate::sessions::Sessions;
use crate::upstream::Upstream;

/// What an agent does at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Connections of clients.
    pub clients: u64,
    /// Calls that are not answered yet, by what they wait for; only kinds of which there are some.
    pub held: BTreeMap<Kind, u64>,
    /// The node in use, and since when. `None` while no node can be reached.
    pub upstream: Option<UpstreamStatus>,
    /// For how long no node has been able to serve. `None`: one can.
    pub outage: Option<Duration>,
    /// Outages since the start, the present one included.
    pub outages: u64,
    /// Heartbeats on which the cluster has given a verdict.
    pub beats_told: u64,
    /// Those of them that were told in a word, as ones of a set that the leader keeps.
    pub beats_in_words: u64,
    /// Heartbeats that were answered without one.
    pub beats_leased: u64,
    /// Sessions that are open at the cluster.
    pub sessions: usize,
    /// Bytes that are held for clients: their requests and calls, and answers that they have not read.
    pub held_bytes: u64,
}

/// The node in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Its client address.
    pub address: String,
    /// How long it has been in use.
    pub used_for: Duration,
}

/// Tells the status of a running agent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StatusHandle {
    pub(crate) upstream: Upstream,
    pub(crate) meters: Arc<Meters>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) memory: Budget,
}

impl StatusHandle {
    /// The status now.
    #[must_use]
    pub fn status(&self) -> AgentStatus {
        let held = Kind::ALL.into_iter().map(|kind| (kind, self.meters.held(kind)));
        let upstream = self
            .upstream
            .current()
            .map(|link| UpstreamStatus { address: link.address.clone(), used_for: link.since.elapsed() });
        AgentStatus {
            clients: self.meters.clients(),
            held: held.filter(|(_, count)| *count > 0).collect(),
            upstream,
            outage: self.upstream.outage(),
            outages: self.upstream.outages(),
            beats_told: self.meters.beats_told(),
            beats_in_words: self.meters.beats_in_words(),
            beats_leased: self.meters.beats_leased(),
            sessions: self.sessions.count(),
            held_bytes: self.memory.held(),
        }
    }
}
