//! A leader whose process has ended is replaced at once, and not when its lease is over.
//!
//! The system closes all connections of a process that ends, and refuses whoever connects to its port. So each
//! follower keeps a connection to the leader's peer port on which nothing is said. A follower has *lost* its leader
//! when that connection has ended, the port refuses ([`watch`]), and no stream of the leader's appends is open: a
//! leader whose port alone is gone still streams. It then asks the other voters whether they have lost that leader,
//! too. If a majority of all voters has, this node included, the one with the longest log among them stands for
//! election within all leases, as an heir does to whom a leader hands over; and a moment later the next one, if nobody
//! leads by then ([`judge`]).
//!
//! A machine that loses power, a process that stands still and a network that is cut refuse nobody: there the timers
//! decide, as ever.
//!
//! Elections are Raft's own, so an early one can cost time and never an entry. Nothing may rely on a leader's lease
//! (INV-46). What keeps an election from being held without need: the majority, one suspicion in a term and
//! [`watch::SUSPICIONS_MAX`] in a while, and a rest after a leader that turned out to live. A node that does not know
//! the question does not agree.

mod judge;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch as watched};
use tonic::Status;
use tripod_proto::tripod::peer::v1::{LogEnd, SuspectRequest, SuspectResponse};
use tripod_state::ids::NodeId;

use self::judge::End;
pub(crate) use self::watch::Watcher;
use crate::apply::engine::Raft;
use crate::apply::state_machine::StateMachine;
use crate::base::types::{LogId, Vote};

/// How long this node may take to find out what another one has found already.
const FINDING_TIME: Duration = Duration::from_millis(100);
/// Questions that may wait for that at a time: each of a few other voters has one.
const QUESTIONS_MAX: usize = 16;

/// A leader of one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LeaderTerm {
    leader: u64,
    term: u64,
}

impl LeaderTerm {
    /// What its leadership rests on.
    fn vote(self) -> Vote {
        Vote::new_committed(self.term, self.leader)
    }
}

/// Which leader this node has lost, if any. Clones are the same.
#[derive(Clone)]
pub(crate) struct Suspicion {
    node: NodeId,
    raft: Raft,
    /// It says who is to lead nothing.
    machine: StateMachine,
    lost: watched::Sender<Option<LeaderTerm>>,
    questions: Arc<Semaphore>,
}

/// What this node knows at one moment.
struct Known {
    vote: Vote,
    last_log_id: Option<LogId>,
    /// More than half of each of these sets must agree; two while members change.
    quorums_of: Vec<BTreeSet<u64>>,
    addresses: BTreeMap<u64, String>,
}

impl Known {
    fn voters(&self) -> BTreeSet<u64> {
        self.quorums_of.iter().flatten().copied().collect()
    }

    /// Whether `asker` may suspect `leader`.
    ///
    /// # Errors
    /// It is no voter, or this node knows another leader or another term.
    fn check(&self, asker: u64, leader: LeaderTerm) -> Result<(), Status> {
        if !self.voters().contains(&asker) {
            return Err(Status::permission_denied(format!("node {asker} is no voter, and suspects nobody")));
        }
        if self.vote != leader.vote() {
            let LeaderTerm { leader, term } = leader;
            let vote = self.vote;
            return Err(Status::failed_precondition(format!(
                "node {leader} is not known here to lead in term {term}: the vote here is {vote}"
            )));
        }
        Ok(())
    }

    fn end(&self) -> Option<End> {
        let LogId { leader_id, index } = self.last_log_id?;
        Some(End { term: leader_id.term, node: leader_id.node_id, index })
    }
}

impl Suspicion {
    pub(crate) fn new(node: NodeId, raft: Raft, machine: StateMachine) -> Self {
        let (lost, questions) = (watched::Sender::new(None), Arc::new(Semaphore::new(QUESTIONS_MAX)));
        Self { node, raft, machine, lost, questions }
    }

    /// Answers a voter that has lost its leader, when this node has lost it, too, or has not in time.
    ///
    /// # Errors
    /// Whoever asks is no voter, this node knows another leader or another term, too many ask, or it is stopping.
    pub(crate) async fn answer(&self, question: &SuspectRequest) -> Result<SuspectResponse, Status> {
        let SuspectRequest { node, leader, term } = *question;
        let leader = LeaderTerm { leader, term };
        let look = || async { self.look().await.map_err(Status::unavailable) };
        look().await?.check(node, leader)?;
        let turn = self.questions.try_acquire();
        let _turn = turn.map_err(|_| Status::resource_exhausted("too many ask whether a leader is lost"))?;
        if !self.has_lost(leader).await {
            return Ok(SuspectResponse { agrees: false, end: None });
        }
        let known = look().await?;
        known.check(node, leader)?;
        let end = self.candidacy(&known).map(|End { term, node, index }| LogEnd { term, node, index });
        Ok(SuspectResponse { agrees: true, end })
    }

    /// Whether this node has lost that leader, or loses it in a moment.
    async fn has_lost(&self, leader: LeaderTerm) -> bool {
        let mut lost = self.lost.subscribe();
        let found = lost.wait_for(|lost| *lost == Some(leader));
        tokio::time::timeout(FINDING_TIME, found).await.is_ok_and(|found| found.is_ok())
    }

    /// Where the log of this node ends, if it may stand for election: one that is drained does not.
    fn candidacy(&self, known: &Known) -> Option<End> {
        let is_drained = self.machine.read(|state| state.is_drained(self.node));
        known.end().filter(|_| !is_drained)
    }

    /// # Errors
    /// The engine has stopped.
    async fn look(&self) -> Result<Known, String> {
        let looked = self.raft.with_raft_state(|state| {
            let membership = state.membership_state.effective().membership();
            Known {
                vote: *state.vote_ref(),
                last_log_id: state.log_ids.last().copied(),
                quorums_of: membership.get_joint_config().clone(),
                addresses: membership.nodes().map(|(node, peer)| (*node, peer.address.clone())).collect(),
            }
        });
        looked.await.map_err(|fatal| fatal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let quorums_of = vec![BTreeSet::from([1, 2, 3]), BTreeSet::from([2, 3, 4])];
        let vote = Vote::new_committed(7, 3);
        Known { vote, last_log_id: None, quorums_of, addresses: BTreeMap::new() }
    }

    fn refused(asker: u64, leader: u64, term: u64) -> Option<tonic::Code> {
        known().check(asker, LeaderTerm { leader, term }).err().map(|status| status.code())
    }

    #[test]
    fn only_voters_may_suspect_and_only_the_leader_of_this_term() {
        assert_eq!((refused(1, 3, 7), refused(4, 3, 7)), (None, None));
        assert_eq!(refused(5, 3, 7), Some(tonic::Code::PermissionDenied));
        for (leader, term) in [(3, 6), (3, 8), (2, 7), (0, 0)] {
            assert_eq!(refused(1, leader, term), Some(tonic::Code::FailedPrecondition));
        }
        let elected_by_nobody = Known { vote: Vote::new(7, 3), ..known() };
        assert!(elected_by_nobody.check(1, LeaderTerm { leader: 3, term: 7 }).is_err());
    }
}
