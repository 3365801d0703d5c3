//! One round of linearizable reads on the leader: a quorum says which vote it holds.
//!
//! openraft's own round takes an answer to an append for an answer to the newest one that says nothing more. An
//! answer that lay in a socket while this process was stopped then proves a leadership that is over, and a
//! read that came in meanwhile finds what the next leader has long replaced. Here each answer belongs to a
//! question that was asked after the reader had come: whoever holds no later vote then has not elected
//! anybody else before, so nothing was acknowledged that this node does not know.
//!
//! Neither side asks its engine. The leader takes what it has applied, once that holds an entry of its own term: what
//! it acknowledged it had applied, and what earlier leaders acknowledged lies below. A member tells the vote that its
//! log holds, which is there before anybody is told of it (docs/decisions/060).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver as _;
use openraft::errors::{LinearizableReadError, RaftError};
use parking_lot::Mutex;
use tripod_proto::tripod::peer::v1::Blob;
use tripod_state::ids::LogIndex;

use crate::apply::engine::Raft;
use crate::apply::state_machine::StateMachine;
use crate::base::codec;
use crate::base::error::ProposeError;
use crate::base::types::{Peer, Vote};
use crate::lead::read_index::Rounds;
use crate::log::LogStore;
use crate::peers::calls::{Destination, PeerCalls};
use crate::peers::channels::Class;

/// How long a quorum may take. Who waits for the read asks again.
const ANSWER_DEADLINE: Duration = Duration::from_secs(1);

/// Asks the members.
#[derive(Clone)]
pub(crate) struct HeldVotes {
    calls: PeerCalls,
    raft: Raft,
    log: LogStore,
    machine: StateMachine,
    /// One question at a time is under way to each member: a round that has its quorum leaves the others' answers
    /// to themselves, and a member that does not answer keeps one call, not thousands.
    members: Arc<Mutex<BTreeMap<u64, Member>>>,
}

/// How to ask a member.
struct Member {
    address: String,
    /// `None`: it did not say.
    votes: Rounds<Option<Vote>>,
}

/// What the leader knows when a round begins.
struct Known {
    vote: Vote,
    /// More than half of each of these sets must answer; two while members change.
    quorums_of: Vec<BTreeSet<u64>>,
    addresses: BTreeMap<u64, String>,
}

impl Known {
    fn new(vote: Vote, membership: &openraft::Membership<u64, Peer>) -> Self {
        Self {
            vote,
            quorums_of: membership.get_joint_config().clone(),
            addresses: membership.nodes().map(|(node, peer)| (*node, peer.address.clone())).collect(),
        }
    }
}

impl HeldVotes {
    pub(crate) fn new(calls: PeerCalls, raft: Raft, log: LogStore, machine: StateMachine) -> Self {
        Self { calls, raft, log, machine, members: Arc::default() }
    }

    /// Runs a round; gives the index that a reader must have applied.
    ///
    /// # Errors
    /// This node does not lead, or cannot prove that it does.
    pub(crate) async fn confirm(&self) -> Result<LogIndex, ProposeError> {
        let (known, index) = match self.at_hand() {
            Some(found) => found,
            None => self.of_engine().await?,
        };
        self.prove(&known).await?;
        Ok(LogIndex(index))
    }

    /// What this node knows of itself as a leader that has applied an entry of its term, and what it has applied.
    ///
    /// The members may be those of before the newest change, if that began just now: it needs a majority of these, too,
    /// to elect somebody (decision 060).
    fn at_hand(&self) -> Option<(Known, u64)> {
        let (vote, applied) = (self.log.vote()?, self.machine.applied_id()?);
        let leads = vote.leader_id.node_id == self.calls.node() && applied.leader_id == vote.leader_id;
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        leads.then(|| {
            // That an entry of its term was applied says that it was elected.
            let vote = Vote::new_committed(vote.leader_id.term, vote.leader_id.node_id);
            // By now there may be more, and what was acknowledged is among it: `applied` follows a little later.
            (Known::new(vote, membership), self.machine.applied_index())
        })
    }

    /// The same, asked of the engine: for a leader that does not know yet how much of what it found is committed.
    async fn of_engine(&self) -> Result<(Known, u64), ProposeError> {
        let looked = self.raft.with_raft_state(|state| {
            Known::new(*state.vote_ref(), state.membership_state.effective().membership())
        });
        let known = looked.await.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))?;
        if !known.vote.committed || known.vote.leader_id.node_id != self.calls.node() {
            return Err(ProposeError::NoLeader("this node does not lead".into()));
        }
        let index = self.first_index().await?;
        Ok((known, index))
    }

    /// Whether a member answers, and may vote: one that has lost its data refuses. It is asked now.
    pub(crate) async fn answers(&self, node: u64, address: &str) -> bool {
        self.votes_of(node, address).outcome().await.is_ok_and(|held| held.is_some())
    }

    /// The index from openraft, which waits until the first entry of the term is committed.
    async fn first_index(&self) -> Result<u64, ProposeError> {
        match self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
            Ok(linearizer) => Ok(linearizer.read_log_id().index()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_))) => {
                Err(ProposeError::NoLeader("this node does not lead".into()))
            }
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(error))) => {
                Err(ProposeError::NoLeader(format!("the leader cannot reach a quorum: {error}")))
            }
            Err(RaftError::Fatal(fatal)) => Err(ProposeError::Stopped(fatal.to_string())),
        }
    }

    /// Asks until enough members hold no later vote than this leader's.
    async fn prove(&self, known: &Known) -> Result<(), ProposeError> {
        let this = self.calls.node();
        let mut agreeing = BTreeSet::from([this]);
        let others = known.quorums_of.iter().flatten().copied().filter(|node| *node != this);
        let others: BTreeSet<u64> = others.collect();
        let mut asked: FuturesUnordered<_> = others.into_iter().map(|node| self.ask(known, node)).collect();
        while !is_quorum(&known.quorums_of, &agreeing) {
            let Some((node, held)) = asked.next().await else {
                return Err(ProposeError::NoLeader("the leader cannot reach a quorum".into()));
            };
            match held {
                Some(held) if held <= known.vote => {
                    agreeing.insert(node);
                }
                Some(_) => return Err(ProposeError::NoLeader("another node was elected".into())),
                None => {}
            }
        }
        Ok(())
    }

    async fn ask(&self, known: &Known, node: u64) -> (u64, Option<Vote>) {
        let Some(address) = known.addresses.get(&node) else { return (node, None) };
        let votes = self.votes_of(node, address);
        (node, votes.outcome().await.unwrap_or(None))
    }

    fn votes_of(&self, node: u64, address: &str) -> Rounds<Option<Vote>> {
        let mut members = self.members.lock();
        if let Some(known) = members.get(&node).filter(|known| known.address == address) {
            return known.votes.clone();
        }
        let (calls, place) = (self.calls.clone(), address.to_owned());
        let votes = Rounds::start({
            let place = place.clone();
            move || held_by(calls.clone(), node, place.clone())
        });
        members.insert(node, Member { address: place, votes: votes.clone() });
        votes
    }
}

/// The vote that a member holds; `None`: it did not say.
async fn held_by(calls: PeerCalls, node: u64, address: String) -> Option<Vote> {
    let to = Destination { node, address: &address, class: Class::Vote, deadline: ANSWER_DEADLINE };
    let asked =
        calls.call(to, Blob::default(), |mut client, request| async move { client.held_vote(request).await });
    codec::decode(&asked.await.ok()?.data).ok()
}

/// The vote that this node holds.
///
/// # Errors
/// The engine has stopped.
pub(crate) async fn own(raft: &Raft) -> Result<Vote, String> {
    raft.with_raft_state(|state| *state.vote_ref()).await.map_err(|fatal| fatal.to_string())
}

/// Whether more than half of each set agrees.
pub(super) fn is_quorum(sets: &[BTreeSet<u64>], agreeing: &BTreeSet<u64>) -> bool {
    sets.iter().all(|set| set.intersection(agreeing).count() * 2 > set.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_is_more_than_half_of_each_set() {
        let set = |nodes: &[u64]| nodes.iter().copied().collect::<BTreeSet<u64>>();
        assert!(is_quorum(&[set(&[1])], &set(&[1])));
        assert!(!is_quorum(&[set(&[1, 2])], &set(&[1])));
        assert!(is_quorum(&[set(&[1, 2, 3])], &set(&[1, 3])));
        assert!(!is_quorum(&[set(&[1, 2, 3, 4])], &set(&[1, 3])));
        let joint = [set(&[1, 2, 3]), set(&[3, 4, 5])];
        assert!(!is_quorum(&joint, &set(&[1, 2, 3])));
        assert!(!is_quorum(&joint, &set(&[3, 4, 5])), "those that leave may still have elected somebody");
        assert!(is_quorum(&joint, &set(&[1, 3, 4])));
    }
}
