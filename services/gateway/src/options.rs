//! What a gateway may be told at its start.

use std::time::Duration;

use tripod_local::ConnectionLimits;
use tripod_port::MemoryLimits;
use tripod_raft::StateLimits;
use tripod_state::ids::DurationMs;

/// The gateway's own patience and bounds. What a job decides (heartbeat and barrier time-outs) is in
/// the replicated state instead.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long a call is held while there is no leader, unless its caller gives up before.
    pub hold: Duration,
    /// What a new leader adds to every task's heartbeat timeout: clients of a node that died must
    /// find another one first.
    pub grace: DurationMs,
    /// Calls that may wait on this node at a time; their bytes are counted, too.
    pub waiting_max: u64,
    /// Connections of clients, on all ports together.
    pub connections: ConnectionLimits,
    /// Bytes that are held for clients.
    pub memory: MemoryLimits,
    /// What the state may take while this node leads, as its node was told: shown beside what it takes.
    pub state: StateLimits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(120),
            grace: DurationMs(2000),
            waiting_max: 1_000_000,
            connections: ConnectionLimits::none(),
            memory: MemoryLimits::none(),
            state: StateLimits::default(),
        }
    }
}
