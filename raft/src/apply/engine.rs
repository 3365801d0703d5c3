//! Names for openraft over this state machine, and what those who look after a node ask of it.

use std::collections::BTreeMap;
use std::future::Future;

use openraft::async_runtime::WatchReceiver as _;
use openraft::raft::AppendEntriesRequest;

use crate::apply::state_machine::StateMachine;
use crate::base::types::{Types, Vote};

pub(crate) type Raft = openraft::Raft<Types, StateMachine>;
/// The part of the metrics that changes with elections only.
pub(crate) type ServerMetrics = openraft::metrics::RaftServerMetrics<Types>;
pub(crate) type Metrics = openraft::RaftMetrics<Types>;

/// What of openraft is needed by those who run without a node in tests. In a node it is [`Raft`].
pub(crate) trait Engine: Send + Sync {
    /// Where the members are, this node included, by the newest list in its log.
    fn addresses(&self) -> BTreeMap<u64, String>;

    /// Says whether this node stands for election when no leader is heard.
    fn stand_for_election(&self, stands: bool);

    /// Makes a leader's vote durable here, so that no older leader is listened to.
    ///
    /// # Errors
    /// The engine has stopped.
    fn hold_vote(&self, vote: Vote) -> impl Future<Output = Result<(), String>> + Send;
}

impl Engine for Raft {
    fn addresses(&self) -> BTreeMap<u64, String> {
        let metrics = self.metrics();
        let metrics = metrics.borrow_watched();
        let nodes = metrics.membership_config.membership().nodes();
        nodes.map(|(node, peer)| (*node, peer.address.clone())).collect()
    }

    fn stand_for_election(&self, stands: bool) {
        self.runtime_config().elect(stands);
    }

    async fn hold_vote(&self, vote: Vote) -> Result<(), String> {
        let nothing = AppendEntriesRequest::<Types> {
            vote,
            prev_log_id: None,
            entries: Vec::new(),
            leader_commit: None,
        };
        self.append_entries(nothing).await.map(|_| ()).map_err(|error| error.to_string())
    }
}
