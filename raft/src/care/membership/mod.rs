//! Changing who the members are, while the cluster runs.
//!
//! What an operator asks for is judged by the leader, written into the log ([`tripod_state::member`]), and then
//! brought about by whoever leads, step by step, until the membership entry of the log is what was asked for.
//! Nothing is remembered outside the log: a leader that is elected in the middle, between the two entries of
//! a change of voters or before the first, finds the change in its state and goes on.
//!
//! | module | what |
//! |---|---|
//! | `votes` | who votes and who answers, before a change and after |
//! | `judge` | whether a change is wise |
//! | `step` | what to do next for a change |
//! | `handler` | takes what is asked |
//! | `driver` | does it, on the leader |
//! | `drained` | a node that is to lead nothing |
//! | `farewell` | how a node learns that it was removed |
//! | `peer_addresses` | the transport follows the membership |

mod drained;
mod driver;
mod farewell;
mod handler;
mod judge;
mod peer_addresses;
mod step;
#[cfg(test)]
mod tests;
mod votes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::Mutex;
use tonic::Code;
use tripod_proto::tripod::peer::v1::Blob;
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;

use crate::apply::cluster_configuration::ClusterConfiguration;
use crate::apply::engine::Raft;
use crate::apply::state_machine::StateMachine;
use crate::lead::hand_over::HandOver;
use crate::lead::held_votes::HeldVotes;
use crate::lead::leadership::LeadershipWatch;
use crate::lead::submit::Submitter;
use crate::peers::calls::PeerCalls;

pub(crate) use farewell::Farewell;
pub use handler::{ChangeError, MemberList, MemberView, MembersAnswer, MembersRequest, Planned};
pub use judge::{LAG_ENTRIES_MAX, Unwise};
pub(crate) use peer_addresses::follow as follow_addresses;
pub use votes::Votes;

/// Judges changes and brings them about. Clones are the same.
#[derive(Clone)]
pub(crate) struct Members {
    pub(crate) calls: PeerCalls,
    pub(crate) raft: Raft,
    pub(crate) machine: StateMachine,
    pub(crate) leadership: LeadershipWatch,
    pub(crate) votes: HeldVotes,
    pub(crate) hand_over: HandOver,
    pub(crate) submitter: Submitter,
    /// How long a member may take to answer: the longest election timeout.
    pub(crate) patience: Duration,
    /// Held while a change is judged, so that the next one is judged by what this one leaves.
    pub(crate) turn: Arc<Mutex<()>>,
    /// The driver does nothing, like that of a leader that is about to end.
    #[cfg(test)]
    pub(crate) idle: Arc<std::sync::atomic::AtomicBool>,
}

/// The members as this node's engine counts them now.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Effective {
    configuration: ClusterConfiguration,
    /// The entry that lists them is committed.
    settled: bool,
}

impl Members {
    async fn effective(&self) -> Result<Effective, String> {
        let looked = self.raft.with_raft_state(|state| {
            let effective = state.membership_state.effective();
            let settled = state.membership_state.committed().log_id() == effective.log_id();
            Effective { configuration: ClusterConfiguration::of(effective.membership()), settled }
        });
        looked.await.map_err(|fatal| fatal.to_string())
    }

    /// Which of the members answer this node now, itself included.
    async fn answering(&self, configuration: &ClusterConfiguration) -> BTreeSet<u64> {
        let asked = configuration.nodes.iter().map(|(node, address)| async move {
            let answers = self.answers(*node, address).await;
            answers.then_some(*node)
        });
        future::join_all(asked).await.into_iter().flatten().collect()
    }

    async fn answers(&self, node: u64, address: &str) -> bool {
        if node == self.calls.node() {
            return true;
        }
        let answers = self.votes.answers(node, address);
        tokio::time::timeout(self.patience, answers).await.unwrap_or(false)
    }

    /// Why whoever listens at that address is not `node` of this cluster; `None` if nobody says so.
    async fn stranger(&self, node: u64, address: &str) -> Option<String> {
        let asked = async {
            let channel = self.calls.connect(address).await.ok()?;
            let request = self.calls.caller(node).request(Blob::default());
            RaftClient::new(channel).held_vote(request).await.err()
        };
        let refusal = tokio::time::timeout(self.patience, asked).await.ok()??;
        (refusal.code() == Code::FailedPrecondition).then(|| refusal.message().to_owned())
    }

    /// How many committed entries each member is not known to hold, as this node knows if it leads.
    fn lags(&self) -> BTreeMap<u64, u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let end = |index: Option<u64>| index.map_or(0, |index| index + 1);
        let committed = end(metrics.local_committed.map(|id| id.index));
        let held = metrics.replication.iter().flatten();
        held.map(|(node, matched)| {
            (*node, committed.saturating_sub(end(matched.as_ref().map(|id| id.index))))
        })
        .collect()
    }
}
