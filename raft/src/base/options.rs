//! What a node is started with.

use std::path::PathBuf;

use tripod_state::ids::{DurationMs, NodeId};

/// Everything that a node must know before it starts.
#[derive(Debug, Clone)]
pub struct Options {
    pub node: NodeId,
    /// Shared by all nodes of one cluster; calls from another cluster are refused.
    pub cluster_id: String,
    /// Holds the log, snapshots and the node's identity.
    pub data: PathBuf,
    /// `HOST:PORT` that the peer transport listens on.
    pub peer_listen: String,
    /// The voters of the first start, the same list on every one of them. On a node that joined later: members that
    /// it was told of then. It is not in that list itself, forms no cluster, and asks them who it is as long as its
    /// log names nobody.
    pub initial: Vec<InitialMember>,
    pub timing: Timing,
    /// A snapshot is built after this many entries or log bytes, whichever comes first.
    pub snapshot_every_entries: u64,
    /// Entries kept behind a snapshot for slow followers.
    pub keep_entries: u64,
    /// How much memory the state may take, as long as this node leads.
    pub state: StateLimits,
}

/// Bytes of memory that the state may take. An eighth of each is only for what goes on with something that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// What one job may take.
    pub job_bytes: u64,
    /// What everything may take together.
    pub state_bytes: u64,
}

impl Default for StateLimits {
    /// A job may have half of it.
    fn default() -> Self {
        Self { job_bytes: 4 << 30, state_bytes: 8 << 30 }
    }
}

/// A voter at first start, or a member at the time when a node joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialMember {
    pub node: NodeId,
    /// `HOST:PORT` of the peer transport.
    pub peer: String,
}

/// Raft's clocks.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub heartbeat: DurationMs,
    pub election_min: DurationMs,
    pub election_max: DurationMs,
}

impl Default for Timing {
    fn default() -> Self {
        Self { heartbeat: DurationMs(100), election_min: DurationMs(300), election_max: DurationMs(600) }
    }
}
