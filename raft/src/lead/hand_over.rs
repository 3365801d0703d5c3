//! Leadership for another node, and back if nobody takes it.
//!
//! From the moment it is told to hand over, openraft's leader refuses every proposal and sends no heartbeats,
//! and it remembers that until it sees a later vote. An heir that dies, stalls or is cut off in that moment
//! never sends one. Other followers stand after an election timeout, unless they may not (one that has lost
//! its data), or cannot win (their logs are behind): then the cluster has a leader that takes nothing, for
//! as long as the heir is away. An election cannot be asked of this leader, either: openraft refuses one to
//! who leads already.
//!
//! So heirs are chosen among those that answer now, and a hand-over that is not taken up in time is taken
//! back: the leader gives the least vote of the next term to another voter ([`next_vote`]). That makes it a
//! follower, with nothing pending, and from there it stands itself, in the term after that. The vote is a vote
//! like any other: it is durable here before it counts. Being the least one, it stands in nobody's way: the
//! heir may still ask for its own, and gets it if its log is no shorter, and whoever was elected in that term
//! meanwhile goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use openraft::raft::VoteRequest;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tripod_state::ids::NodeId;

use super::first_answer::first_yes;
use crate::apply::engine::Raft;
use crate::apply::state_machine::StateMachine;
use crate::base::error::ProposeError;
use crate::base::options::Options;
use crate::base::types::Vote;
use crate::lead::held_votes::{self, HeldVotes};
use crate::lead::leadership::LeadershipWatch;

/// Entries that an heir may lack. It gets them before it stands, and nothing is taken in meanwhile.
const LAG_MAX: u64 = 4096;
/// How long a node that stops looks after its leadership, from the first time that it is asked to leave. With
/// the default timing an heir and another one after it have their time (1.2 s), with a slow one not: whoever
/// ends the process waits for it, and kills it in the end.
const LEAVE_MAX: Duration = Duration::from_secs(2);
/// The part of the longest election timeout for which an heir with a longer log is waited for that says nothing.
const SILENT_PART: u32 = 4;

/// Hands over, one attempt at a time. Clones are the same.
#[derive(Clone)]
pub(crate) struct HandOver {
    node: NodeId,
    raft: Raft,
    /// It says who is to lead nothing.
    machine: StateMachine,
    leadership: LeadershipWatch,
    votes: HeldVotes,
    /// The longest time after which a follower that hears no leader stands for election.
    election_max: Duration,
    turn: Arc<Mutex<()>>,
    /// An heir was told, and has not taken over yet.
    pending: Arc<AtomicBool>,
    /// This node stops, since then. Should it lead again it would only stop leading once more.
    leaving: Arc<OnceLock<Instant>>,
}

/// A voter that might be next.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    node: NodeId,
    address: String,
    /// Entries of this leader that it is not known to have.
    lag: u64,
}

impl HandOver {
    pub(crate) fn new(
        options: &Options,
        raft: Raft,
        machine: StateMachine,
        leadership: LeadershipWatch,
        votes: HeldVotes,
    ) -> Self {
        let election_max = Duration::from_millis(options.timing.election_max.0);
        Self {
            node: options.node,
            raft,
            machine,
            leadership,
            votes,
            election_max,
            turn: Arc::default(),
            pending: Arc::default(),
            leaving: Arc::default(),
        }
    }

    /// Whether an heir has been told, and has not taken over yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Hands over to that voter, `None`: to the one whose log is furthest of those that answer, and waits for
    /// it.
    ///
    /// # Errors
    /// This node does not lead, the voter does not answer or is behind, or nobody took over in time: then
    /// this node stands for election.
    pub(crate) async fn to(&self, heir: Option<NodeId>) -> Result<(), ProposeError> {
        let this = self.clone();
        // In a task of its own: whoever asked may stop waiting, and an heir that was told must be looked
        // after.
        let attempt = tokio::spawn(async move {
            let _turn = this.turn.lock().await;
            this.hand_over(heir).await
        });
        attempt.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// [`Self::to`] whoever is best, for a node that stops: it does not stand for election any more. Ends
    /// [`LEAVE_MAX`] after the first call at the latest, in each call.
    ///
    /// # Errors
    /// As [`Self::to`], or the time is over.
    pub(crate) async fn leave(&self) -> Result<(), ProposeError> {
        let since = *self.leaving.get_or_init(Instant::now);
        let left = async {
            if self.is_pending() {
                // One attempt is enough, whoever began it.
                let _turn = self.turn.lock().await;
                return Ok(());
            }
            self.to(None).await
        };
        tokio::time::timeout_at(since + LEAVE_MAX, left).await.unwrap_or_else(|_| {
            let text = format!("nobody took over within {} ms", LEAVE_MAX.as_millis());
            Err(ProposeError::NoLeader(text))
        })
    }

    async fn hand_over(&self, wanted: Option<NodeId>) -> Result<(), ProposeError> {
        if !self.leadership.leads_here() {
            return Err(ProposeError::NoLeader("this node does not lead; ask the leader".into()));
        }
        if wanted == Some(self.node) {
            return Ok(());
        }
        let heir = self.heir(wanted).await?;
        self.pending.store(true, Ordering::Relaxed);
        let offered = self.offer(heir).await;
        self.pending.store(false, Ordering::Relaxed);
        let leader = offered?;
        if wanted.is_some_and(|wanted| wanted != leader) {
            let text = format!("node {heir} did not take over: node {leader} was elected");
            return Err(ProposeError::NoLeader(text));
        }
        Ok(())
    }

    /// Who may be told to take over.
    pub(crate) async fn heir(&self, wanted: Option<NodeId>) -> Result<NodeId, ProposeError> {
        let candidates = self.candidates();
        let is_drained = |node: NodeId| self.machine.read(|state| state.is_drained(node));
        let Some(wanted) = wanted else {
            let candidates = candidates.into_iter().filter(|candidate| !is_drained(candidate.node)).collect();
            let heir = self.first_to_answer(candidates).await;
            return heir
                .ok_or_else(|| ProposeError::NoLeader("no other voter answers and is up to date".into()));
        };
        let Some(candidate) = candidates.into_iter().find(|candidate| candidate.node == wanted) else {
            return Err(ProposeError::NoLeader(format!("node {wanted} is no voter")));
        };
        if is_drained(wanted) {
            let text = format!("node {wanted} is drained; `tripod node undrain {wanted}` first");
            return Err(ProposeError::NoLeader(text));
        }
        if candidate.lag > LAG_MAX {
            let lag = candidate.lag;
            let text = format!("node {wanted} is {lag} entries behind; try again when it has caught up");
            return Err(ProposeError::NoLeader(text));
        }
        if !self.answers(&candidate).await {
            return Err(ProposeError::NoLeader(format!(
                "node {wanted} does not answer, or may not vote yet"
            )));
        }
        Ok(wanted)
    }

    /// The other voters, those with the furthest logs first.
    fn candidates(&self) -> Vec<Candidate> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let end = |last: u64| last + 1;
        let mine = metrics.last_log_index.map_or(0, end);
        let held = |node: u64| -> Option<u64> {
            let matched = metrics.replication.as_ref()?.get(&node)?.as_ref();
            matched.map(|id| end(id.index))
        };
        let others = membership.voter_ids().filter(|node| *node != self.node.0);
        let others = others.filter_map(|node| {
            let address = membership.get_node(&node)?.address.clone();
            Some(Candidate { node: NodeId(node), address, lag: mine.saturating_sub(held(node).unwrap_or(0)) })
        });
        let mut others: Vec<Candidate> = others.collect();
        others.sort_by_key(|candidate| candidate.lag);
        others
    }

    /// The first of them that answers; all are asked at once.
    async fn first_to_answer(&self, mut candidates: Vec<Candidate>) -> Option<NodeId> {
        candidates.retain(|candidate| candidate.lag <= LAG_MAX);
        let questions = candidates.iter().map(|candidate| self.answers(candidate));
        let first = first_yes(questions, self.election_max / SILENT_PART).await?;
        Some(candidates[first].node)
    }

    async fn answers(&self, candidate: &Candidate) -> bool {
        let answers = self.votes.answers(candidate.node.0, &candidate.address);
        tokio::time::timeout(self.election_max, answers).await.unwrap_or(false)
    }

    /// Tells the heir, and waits until this node has another leader, which is given.
    async fn offer(&self, heir: NodeId) -> Result<NodeId, ProposeError> {
        let vote = held_votes::own(&self.raft).await.map_err(ProposeError::Stopped)?;
        let told = self.raft.trigger().transfer_leader(heir.0).await;
        told.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))?;
        let mut leadership = self.leadership.subscribe();
        let elsewhere = async {
            let found = leadership.wait_for(|now| now.leader.is_some_and(|leader| leader != self.node)).await;
            found.map(|now| now.leader.expect("waited for one")).map_err(|_| stopping())
        };
        // Time for the heir to get what it lacks and be elected, and for another one after it.
        let patience = 2 * self.election_max;
        if let Ok(leader) = tokio::time::timeout(patience, elsewhere).await {
            return leader;
        }
        if self.leaving.get().is_none() {
            self.take_back(vote, heir).await?;
        }
        let text = format!("node {heir} did not take over within {} ms", patience.as_millis());
        Err(ProposeError::NoLeader(text))
    }

    /// Ends a leadership of which nothing can come any more, and stands for the next. `vote`: the one that it
    /// rests on.
    async fn take_back(&self, vote: Vote, heir: NodeId) -> Result<(), ProposeError> {
        let stopped = |error: &dyn std::fmt::Display| ProposeError::Stopped(error.to_string());
        let looked = self.raft.with_raft_state(|state| {
            let voters: Vec<u64> = state.membership_state.effective().membership().voter_ids().collect();
            (*state.vote_ref(), state.log_ids.last().copied(), voters)
        });
        let (held, last_log_id, voters) = looked.await.map_err(|fatal| stopped(&fatal))?;
        if held != vote {
            // An election is under way, and this leadership is over.
            return Ok(());
        }
        let Some(next) = next_vote(&vote, voters) else { return Ok(()) };
        let mut request = VoteRequest::new(next, last_log_id);
        // It is the leader that ends its leadership: nobody's lease speaks against it.
        request.leadership_transfer = true;
        let answer = self.raft.vote(request).await.map_err(|error| stopped(&error))?;
        tracing::warn!(
            node = self.node.0,
            heir = heir.0,
            term = vote.leader_id.term,
            given = answer.vote_granted,
            "the leadership that was handed over was not taken; this node stands for election"
        );
        // The others are asked first whether they would vote for this node: one of them may be elected now.
        self.raft.trigger().elect(true).await.map_err(|fatal| stopped(&fatal))
    }
}

/// The vote that ends the leadership which rests on `vote`, and no other one: the least of the next term, which
/// is the first other voter's, since votes of a term are ordered by node. Somebody may have been elected in that
/// term without this node having heard of it; a vote for a later node would depose them, and one for this node
/// would make it a candidate with no say in its own term. `None`: there is no other voter.
fn next_vote(vote: &Vote, voters: impl IntoIterator<Item = u64>) -> Option<Vote> {
    let others = voters.into_iter().filter(|voter| *voter != vote.leader_id.node_id);
    others.min().map(|first| Vote::new(vote.leader_id.term + 1, first))
}

fn stopping() -> ProposeError {
    ProposeError::Stopped("this node is stopping".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_that_ends_a_leadership_deposes_nobody_who_was_elected_after_it() {
        let voters = [1, 2, 3, 4, 5];
        for leader in voters {
            let vote = Vote::new_committed(7, leader);
            let next = next_vote(&vote, voters).unwrap();
            assert!(next > vote, "{next} does not end {vote}");
            assert_ne!(next.leader_id.node_id, leader, "a vote for itself makes a candidate");
            for elected in voters.into_iter().filter(|voter| *voter != leader) {
                let elected = Vote::new_committed(8, elected);
                assert!(elected > next, "{next} deposes {elected}");
                let asking = Vote::new(8, elected.leader_id.node_id);
                assert!(asking >= next, "{next} stands in the way of {asking}");
            }
        }
        assert_eq!(next_vote(&Vote::new_committed(7, 1), [1]), None);
    }
}
