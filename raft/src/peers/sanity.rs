//! Whether what a peer says can be true. The engine adds one to terms and indexes, believes a later vote whoever sends
//! it, and keeps what it believes on the disk: a number from the end of what 64 bits hold would stop the node, and would
//! stop it again at every start.
//!
//! Terms are compared with that of the last entry in this node's log, which only a leader can raise, and not with the
//! vote that it holds, which anybody could raise step by step.

use openraft::EntryPayload;
use openraft::raft::AppendEntriesRequest;
use tripod_state::limits::NODES_MAX;

use crate::base::types::{Entry, LogId, TERMS_AHEAD_MAX, Types, Vote};

/// Entries that a peer may be ahead of this node's log: a million in each second for 12 days. A node that comes to an
/// old cluster has none.
const ENTRIES_AHEAD_MAX: u64 = 1 << 40;

/// Where a node's log ends, and so what can come to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reach {
    pub(crate) term: u64,
    pub(crate) index: u64,
}

impl Reach {
    fn term(self, what: &str, term: u64) -> Result<(), String> {
        let most = self.term.saturating_add(TERMS_AHEAD_MAX);
        if term <= most {
            Ok(())
        } else {
            Err(format!("{what} is of term {term}, this node knows {}", self.term))
        }
    }

    pub(crate) fn vote(self, vote: &Vote) -> Result<(), String> {
        self.term("the vote", vote.leader_id.term)
    }

    /// The place of an entry, if any.
    pub(crate) fn end(self, id: Option<&LogId>) -> Result<(), String> {
        let Some(id) = id else { return Ok(()) };
        self.term("an entry", id.leader_id.term)?;
        let most = self.index.saturating_add(ENTRIES_AHEAD_MAX);
        if id.index > most {
            return Err(format!("an entry has index {}, this node's log ends at {}", id.index, self.index));
        }
        Ok(())
    }

    pub(crate) fn append(self, request: &AppendEntriesRequest<Types>) -> Result<(), String> {
        self.vote(&request.vote)?;
        self.end(request.prev_log_id.as_ref())?;
        self.end(request.leader_commit.as_ref())?;
        let mut before = request.prev_log_id;
        for entry in &request.entries {
            self.end(Some(&entry.log_id))?;
            let (wanted, least) = before.map_or((0, 0), |id| (id.index + 1, id.leader_id.term));
            let term = entry.log_id.leader_id.term;
            if entry.log_id.index != wanted || term < least || term > request.vote.leader_id.term {
                return Err(format!("entry {} of term {term} does not follow", entry.log_id.index));
            }
            members(entry)?;
            before = Some(entry.log_id);
        }
        Ok(())
    }
}

/// Whether a peer can hold the vote that it answers with, when it was asked in a term of ours.
///
/// # Errors
/// It cannot, in words.
pub(crate) fn answered(vote: &Vote, asked_term: u64) -> Result<(), String> {
    let own = Reach { term: asked_term, index: 0 };
    own.vote(vote).map_err(|problem| format!("T3116 peer-nonsense: the answer is refused: {problem}"))
}

/// A set of voters is never empty, and all of them have an address.
fn members(entry: &Entry) -> Result<(), String> {
    let EntryPayload::Membership(membership) = &entry.payload else { return Ok(()) };
    let sets = membership.get_joint_config();
    let nodes = membership.nodes().count();
    let is_sound = (1..=2).contains(&sets.len())
        && sets.iter().all(|set| !set.is_empty())
        && membership.voter_ids().all(|voter| membership.get_node(&voter).is_some())
        && nodes <= NODES_MAX;
    if is_sound { Ok(()) } else { Err(format!("entry {} names members that cannot be", entry.log_id.index)) }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use openraft::impls::leader_id_adv::LeaderId;

    use super::*;
    use crate::base::types::Peer;

    const HERE: Reach = Reach { term: 7, index: 100 };

    fn id(term: u64, index: u64) -> LogId {
        LogId::new(LeaderId { term, node_id: 1 }, index)
    }

    fn vote(term: u64) -> Vote {
        Vote { leader_id: LeaderId { term, node_id: 1 }, committed: true }
    }

    fn append(prev: Option<LogId>, ids: &[LogId]) -> Result<(), String> {
        let blank = |id: &LogId| Entry { log_id: *id, payload: EntryPayload::Blank };
        let entries = ids.iter().map(blank).collect();
        HERE.append(&AppendEntriesRequest { vote: vote(8), prev_log_id: prev, entries, leader_commit: None })
    }

    #[test]
    fn f3_terms_and_indexes_far_ahead_of_the_log_are_nobody_s() {
        for term in [0, 7, 8, 7 + TERMS_AHEAD_MAX] {
            assert_eq!(HERE.vote(&vote(term)), Ok(()), "{term}");
        }
        for term in [8 + TERMS_AHEAD_MAX, u64::MAX - 1, u64::MAX] {
            assert!(HERE.vote(&vote(term)).is_err(), "{term}");
            assert!(answered(&vote(term), 7).unwrap_err().contains("T3116"), "{term}");
        }
        assert_eq!((HERE.end(None), HERE.end(Some(&id(7, 1 << 40)))), (Ok(()), Ok(())));
        for wrong in [id(7, u64::MAX), id(u64::MAX, 3), id(7, 101 + ENTRIES_AHEAD_MAX)] {
            assert!(HERE.end(Some(&wrong)).is_err(), "{wrong}");
        }
        let at_the_end = Reach { term: u64::MAX, index: u64::MAX };
        assert_eq!(at_the_end.vote(&vote(u64::MAX)), Ok(()), "nothing overflows here");
    }

    #[test]
    fn entries_follow_each_other_in_terms_of_leaders_that_were() {
        assert_eq!(append(None, &[]), Ok(()));
        assert_eq!(append(None, &[id(0, 0), id(3, 1)]), Ok(()));
        assert_eq!(append(Some(id(7, 100)), &[id(7, 101), id(8, 102)]), Ok(()));
        for (prev, ids) in [
            (None, &[id(3, 1)][..]),
            (Some(id(7, 100)), &[id(7, 102)][..]),
            (Some(id(7, 100)), &[id(7, 101), id(7, 101)][..]),
            (Some(id(7, 100)), &[id(6, 101)][..]),
            (Some(id(7, 100)), &[id(9, 101)][..]),
        ] {
            assert!(append(prev, ids).unwrap_err().contains("does not follow"), "{ids:?}");
        }
    }

    #[test]
    fn members_that_cannot_be_are_refused() {
        let peers = |count: u64| (1..=count).map(|node| (node, Peer::default())).collect::<BTreeMap<_, _>>();
        let check = |voters: &[&[u64]], nodes: u64| {
            // As it comes from a wire: the engine itself makes none that is wrong.
            let sets = voters.iter().map(|set| set.iter().copied().collect::<BTreeSet<u64>>()).collect();
            let sent: (Vec<BTreeSet<u64>>, _) = (sets, peers(nodes));
            let membership = crate::base::codec::decode(&crate::base::codec::encode(&sent)).unwrap();
            members(&Entry { log_id: id(7, 101), payload: EntryPayload::Membership(membership) })
        };
        assert_eq!((check(&[&[1]], 1), check(&[&[1, 2], &[2, 3]], 4)), (Ok(()), Ok(())));
        for (voters, nodes) in [
            (&[][..], 3),
            (&[&[][..]][..], 3),
            (&[&[1, 2, 9][..]][..], 3),
            (&[&[1][..], &[1], &[1]][..], 3),
            (&[&[1][..]][..], 65),
        ] {
            assert!(check(voters, nodes).is_err(), "{voters:?}");
        }
    }
}
