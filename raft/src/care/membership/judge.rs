//! Whether a change is wise. What is possible at all, the registry of the state has said before.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::member::Change;

use super::votes::Votes;

use crate::apply::cluster_configuration::ClusterConfiguration;

/// Committed entries that a learner may lack when it becomes a voter: what a busy leader has under way. It gets
/// the rest within a round trip or two, and would hold up nothing even if its vote were needed at once.
pub const LAG_ENTRIES_MAX: u64 = 1_000;

/// Why the leader does not begin a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwise {
    /// The peer address is none, in words.
    Address(String),
    /// The node has an id and is not among the members.
    NoMember { node: NodeId },
    /// It is to vote, and does.
    Voter { node: NodeId },
    /// It is not to vote, and does not.
    Learner { node: NodeId },
    /// It is reached at that peer address already.
    SameAddress { node: NodeId },
    /// Whoever listens at that peer address is another node, or of another cluster; in its words.
    Stranger { peer: String, reason: String },
    /// It does not answer the leader.
    Silent { node: NodeId },
    /// It has not caught up.
    Lagging { node: NodeId, entries: u64, limit: u64 },
    /// Nobody else could lead: every other voter is drained or does not answer.
    NobodyElse { node: NodeId },
    /// Nobody else votes.
    LastVoter { node: NodeId },
    /// Of the voters that there would be, too few answer.
    QuorumLost { after: Votes },
    /// A node that wants to join runs a build that does not support the feature level in force.
    TooOld { supports: FeatureLevel, level: FeatureLevel },
}

/// What the leader sees.
pub(super) struct MembersView<'a> {
    pub(super) configuration: &'a ClusterConfiguration,
    pub(super) answering: &'a BTreeSet<u64>,
    /// Committed entries that members are not known to hold.
    pub(super) lags: &'a BTreeMap<u64, u64>,
}

impl MembersView<'_> {
    /// The votes after a change. `node`: the one that it is about, of a replacement the new one. `force`: a
    /// quorum may be lost.
    ///
    /// # Errors
    /// [`Unwise`].
    pub(super) fn judge(&self, change: &Change, node: NodeId, force: bool) -> Result<Votes, Unwise> {
        let mut voters = self.configuration.voters();
        let mut all: BTreeSet<u64> = self.configuration.nodes.keys().copied().collect();
        let mut answering = self.answering.clone();
        if let Some(named) = change.member()
            && !self.configuration.contains(named.0)
        {
            return Err(Unwise::NoMember { node: named });
        }
        match change {
            Change::Add { .. } => {
                all.insert(node.0);
            }
            Change::Promote { node } => {
                if !voters.insert(node.0) {
                    return Err(Unwise::Voter { node: *node });
                }
                self.caught_up(*node)?;
            }
            Change::Demote { node } => {
                if !voters.remove(&node.0) {
                    return Err(Unwise::Learner { node: *node });
                }
            }
            Change::Remove { node } => {
                voters.remove(&node.0);
                all.remove(&node.0);
            }
            Change::Move { node, peer } => {
                if self.configuration.nodes.get(&node.0) == Some(peer) {
                    return Err(Unwise::SameAddress { node: *node });
                }
            }
            Change::Replace { old, .. } => {
                all.remove(&old.0);
                all.insert(node.0);
                if voters.remove(&old.0) {
                    voters.insert(node.0);
                    // It takes the place only when it has answered.
                    answering.insert(node.0);
                }
            }
        }
        if voters.is_empty() {
            return Err(Unwise::LastVoter { node });
        }
        let after = Votes::new(&voters, &all, &answering);
        if voters != self.configuration.voters() && !after.has_quorum() && !force {
            return Err(Unwise::QuorumLost { after });
        }
        Ok(after)
    }

    /// Whether a learner may vote now.
    pub(super) fn caught_up(&self, node: NodeId) -> Result<(), Unwise> {
        if !self.answering.contains(&node.0) {
            return Err(Unwise::Silent { node });
        }
        match self.lags.get(&node.0) {
            // Nothing was ever sent to it.
            None => Err(Unwise::Silent { node }),
            Some(entries) if *entries > LAG_ENTRIES_MAX => {
                Err(Unwise::Lagging { node, entries: *entries, limit: LAG_ENTRIES_MAX })
            }
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Voters 1, 2, 3 and learner 4.
    fn configuration() -> ClusterConfiguration {
        let nodes = (1..=4).map(|node| (node, format!("h:{node}"))).collect();
        ClusterConfiguration { sets: vec![BTreeSet::from([1, 2, 3])], nodes }
    }

    fn judged(change: &Change, node: u64, answering: &[u64], lag: u64, force: bool) -> Result<Votes, Unwise> {
        let (configuration, lags) = (configuration(), BTreeMap::from([(4, lag)]));
        let answering = answering.iter().copied().collect();
        let view = MembersView { configuration: &configuration, answering: &answering, lags: &lags };
        view.judge(change, NodeId(node), force)
    }

    fn ids(nodes: &[u64]) -> Vec<NodeId> {
        nodes.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn a_learner_votes_only_when_it_answers_and_has_caught_up() {
        let promote = Change::Promote { node: NodeId(4) };
        let after = judged(&promote, 4, &[1, 2, 3, 4], LAG_ENTRIES_MAX, false).unwrap();
        assert_eq!((after.voters.clone(), after.quorum(), after.learners.len()), (ids(&[1, 2, 3, 4]), 3, 0));
        let lagging = judged(&promote, 4, &[1, 2, 3, 4], LAG_ENTRIES_MAX + 1, true);
        assert!(matches!(lagging, Err(Unwise::Lagging { entries: 1_001, .. })), "{lagging:?}");
        assert_eq!(judged(&promote, 4, &[1, 2, 3], 0, true), Err(Unwise::Silent { node: NodeId(4) }));
        let voter = Change::Promote { node: NodeId(2) };
        assert_eq!(judged(&voter, 2, &[1, 2, 3], 0, false), Err(Unwise::Voter { node: NodeId(2) }));
    }

    #[test]
    fn what_would_lose_the_quorum_is_refused_unless_forced() {
        let remove = Change::Remove { node: NodeId(3) };
        let after = judged(&remove, 3, &[1, 2, 3], 0, false).unwrap();
        assert_eq!((after.voters, after.learners), (ids(&[1, 2]), ids(&[4])));
        // Of voters 1 and 2 only one answers: two must.
        let refused = judged(&remove, 3, &[1, 3], 0, false);
        let Err(Unwise::QuorumLost { after }) = &refused else { panic!("{refused:?}") };
        assert_eq!((after.quorum(), after.answering(), after.silent()), (2, 1, &ids(&[2])[..]));
        assert!(judged(&remove, 3, &[1, 3], 0, true).is_ok());
        // To remove the silent one is what helps.
        assert!(judged(&Change::Remove { node: NodeId(2) }, 2, &[1, 3], 0, false).is_ok());
        assert!(judged(&Change::Demote { node: NodeId(3) }, 3, &[1, 3], 0, false).is_err());
    }

    #[test]
    fn learners_and_addresses_are_no_matter_of_the_quorum() {
        assert!(judged(&Change::Remove { node: NodeId(4) }, 4, &[1], 0, false).is_ok());
        assert!(judged(&Change::Add { peer: "h:5".to_owned() }, 5, &[1], 0, false).is_ok());
        assert!(judged(&Change::Move { node: NodeId(2), peer: "h:9".to_owned() }, 2, &[1], 0, false).is_ok());
        let same = judged(&Change::Move { node: NodeId(2), peer: "h:2".to_owned() }, 2, &[1], 0, false);
        assert_eq!(same, Err(Unwise::SameAddress { node: NodeId(2) }));
        let demoted = judged(&Change::Demote { node: NodeId(4) }, 4, &[1, 2, 3], 0, false);
        assert_eq!(demoted, Err(Unwise::Learner { node: NodeId(4) }));
    }

    #[test]
    fn a_replacement_leaves_as_many_voters_and_counts_the_new_one() {
        let replace = Change::Replace { old: NodeId(2), peer: "h:5".to_owned() };
        let after = judged(&replace, 5, &[1, 3], 0, false).unwrap();
        assert_eq!((after.voters.clone(), after.quorum(), after.silent()), (ids(&[1, 3, 5]), 2, &[][..]));
    }

    #[test]
    fn the_last_voter_stays_whatever_is_forced() {
        let alone = ClusterConfiguration {
            sets: vec![BTreeSet::from([1])],
            nodes: BTreeMap::from([(1, "h:1".to_owned())]),
        };
        let (answering, lags) = (BTreeSet::from([1]), BTreeMap::new());
        let view = MembersView { configuration: &alone, answering: &answering, lags: &lags };
        let refused = view.judge(&Change::Remove { node: NodeId(1) }, NodeId(1), true);
        assert_eq!(refused, Err(Unwise::LastVoter { node: NodeId(1) }));
    }
}
