//! From our options to openraft's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use crate::base::error::StartError;
use crate::base::options::Options;
use crate::peers::auth::Caller;
use crate::peers::{channels, transfer};

/// Entries of one message to a follower; its bytes are bounded by the log store.
const MESSAGE_ENTRIES_MAX: u64 = 1024;
/// Entries of one append to the log, and commands that openraft takes in at a time.
const APPEND_ENTRIES_MAX: u64 = 4096;
/// Connecting within a machine room takes a millisecond; this is for a lost packet.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_millis(300);

/// How long connecting to a peer may take: a part of the shortest election timeout, so that a
/// candidate has its answers before it would stand again.
pub(crate) fn connect_timeout(options: &Options) -> Duration {
    let third = Duration::from_millis(options.timing.election_min.0) / 3;
    third.clamp(Duration::from_millis(1), CONNECT_TIMEOUT_MAX)
}

/// openraft's configuration.
///
/// # Errors
/// Options that cannot work together, in words.
pub(crate) fn raft_config(options: &Options) -> Result<Arc<Config>, StartError> {
    Caller::new(&options.cluster_id, options.node.0).map_err(StartError::Identity)?;
    if options.cluster_id.is_empty() {
        return Err(StartError::Identity(
            "the cluster id is empty; give all nodes of a cluster the same one".into(),
        ));
    }
    check_members(options)?;
    let timing = options.timing;
    let config = Config {
        cluster_name: options.cluster_id.clone(),
        heartbeat_interval: timing.heartbeat.0,
        // Under load an append proves as much as a heartbeat.
        heartbeat_min_interval: Some(timing.heartbeat.0 / 2),
        election_timeout_min: timing.election_min.0,
        election_timeout_max: timing.election_max.0,
        enable_pre_vote: Some(true),
        // A leader that resumes its term after a crash could give an index of that term, which a
        // follower already has, to another entry: it sends entries before it has flushed them.
        enable_leader_restore: Some(false),
        // A leader that no quorum answers stops its heartbeats, which would keep others from standing, for
        // long enough that one of them is elected; then it tries again, for as long: its log may be the only
        // one that can win.
        quorum_loss_probe_interval: Some(timing.election_max.0.saturating_mul(3)),
        max_payload_entries: MESSAGE_ENTRIES_MAX,
        max_append_entries: Some(APPEND_ENTRIES_MAX),
        api_batch_capacity: APPEND_ENTRIES_MAX,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_every_entries.max(1)),
        // What is kept behind a snapshot is bounded in bytes, too: `node::trim` decides.
        max_in_snapshot_log_to_keep: u64::MAX,
        // Larger than what a follower may lag and still be served from the log.
        replication_lag_threshold: options.snapshot_every_entries.saturating_mul(2) + options.keep_entries,
        install_snapshot_timeout: u64::try_from(transfer::INSTALL_DEADLINE.as_millis()).unwrap_or(u64::MAX),
        ..Config::default()
    };
    let valid = config.validate().map_err(|error| {
        StartError::Identity(format!(
            "the timing (heartbeat {} ms, election {} to {} ms) cannot work: {error}",
            timing.heartbeat, timing.election_min, timing.election_max
        ))
    })?;
    Ok(Arc::new(valid))
}

/// A list that is wrong would only show as an election that never ends.
fn check_members(options: &Options) -> Result<(), StartError> {
    let mut seen = BTreeSet::new();
    for member in &options.initial {
        channels::parse(&member.peer).map_err(StartError::Network)?;
        if !seen.insert(member.node) {
            return Err(StartError::Identity(format!(
                "node {} is twice in the list of initial members; give every node an id of its own",
                member.node
            )));
        }
    }
    Ok(())
}
