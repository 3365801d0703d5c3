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
