//! Refuses what no peer can mean, before the engine hears it.

use openraft::async_runtime::WatchReceiver as _;
use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest, VoteRequest};
use tonic::Status;

use super::seldom::Seldom;
use crate::apply::engine::Raft;
use crate::base::types::{LogId, Types, Vote};
use crate::peers::sanity::Reach;

/// Checks what peers say before the engine hears it.
#[derive(Clone)]
pub(crate) struct Sanity {
    raft: Raft,
    refusals: Seldom,
}

impl Sanity {
    pub(crate) fn new(raft: Raft) -> Self {
        Self { raft, refusals: Seldom::default() }
    }

    /// # Errors
    /// No candidate can be there.
    pub(crate) fn vote_request(&self, request: &VoteRequest<Types>) -> Result<(), Status> {
        let reach = self.reach();
        self.told(reach.vote(&request.vote).and_then(|()| reach.end(request.last_log_id.as_ref())))
    }

    /// # Errors
    /// No leader can be there.
    pub(crate) fn transfer(&self, request: &TransferLeaderRequest<Types>) -> Result<(), Status> {
        let reach = self.reach();
        self.told(reach.vote(request.from_leader()).and_then(|()| reach.end(request.last_log_id())))
    }

    /// # Errors
    /// No leader can be there, or no leader appends such entries.
    pub(crate) fn append(&self, request: &AppendEntriesRequest<Types>) -> Result<(), Status> {
        self.told(self.reach().append(request))
    }

    /// # Errors
    /// No leader can be there, or no snapshot reaches so far.
    pub(crate) fn snapshot(&self, vote: &Vote, last: Option<&LogId>) -> Result<(), Status> {
        let reach = self.reach();
        self.told(reach.vote(vote).and_then(|()| reach.end(last)))
    }

    fn reach(&self) -> Reach {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        // Of entries that are on their way to the disk it may not tell yet: that is near enough.
        let known = [metrics.last_applied, metrics.snapshot, metrics.local_committed];
        let last = known.into_iter().flatten().max();
        let index = metrics.last_log_index.unwrap_or(0).max(last.map_or(0, |last| last.index));
        Reach { term: last.map_or(0, |last| last.leader_id.term), index }
    }

    fn told(&self, checked: Result<(), String>) -> Result<(), Status> {
        checked.map_err(|problem| {
            if self.refusals.is_due() {
                tracing::warn!(problem, "T3116 peer-nonsense: a message of a peer is refused");
            }
            Status::invalid_argument(format!("T3116 peer-nonsense: the message is refused: {problem}"))
        })
    }
}
