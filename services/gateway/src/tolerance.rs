//! How many more voters a cluster can lose, and whether its members can be changed now. Everybody who prints either asks
//! here.

use std::time::Duration;

use tripod_raft::{Measures, Role, Status};

/// A voter that the leader has not heard for longer does not answer: several times what an election takes.
pub const SILENT_AFTER: Duration = Duration::from_secs(2);
/// A voter that lacks more committed entries could not take part in a quorum at once.
pub const BEHIND_ENTRIES: u64 = 10_000;

/// What whoever leads knows of one voter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterHealth {
    /// It was heard within [`SILENT_AFTER`].
    pub answers: bool,
    /// Its log lacks [`BEHIND_ENTRIES`] committed entries at most.
    pub is_current: bool,
}

/// What a cluster can bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// Members with a vote.
    pub voters: usize,
    /// How many of them must agree.
    pub quorum: usize,
    /// How many of them answer, and hold nearly all that is committed.
    pub healthy: usize,
    /// So many more of those may fail, and the cluster goes on.
    pub failures: usize,
    /// Members may be changed: no change is under way, and nothing is wrong with any voter.
    pub change_safe: bool,
}

impl Tolerance {
    /// That of a cluster with these voters. While voters change they are those of both sets, and then no change is safe.
    #[must_use]
    pub fn of(voters: &[VoterHealth], is_changing: bool) -> Self {
        let quorum = voters.len() / 2 + 1;
        let healthy = voters.iter().filter(|voter| voter.answers && voter.is_current).count();
        let change_safe = !is_changing && !voters.is_empty() && healthy == voters.len();
        Self { voters: voters.len(), quorum, healthy, failures: healthy.saturating_sub(quorum), change_safe }
    }

    /// As a node knows it: only one that leads does.
    #[must_use]
    pub fn known_by(status: &Status, measures: &Measures, is_changing: bool) -> Option<Self> {
        if status.role != Role::Leader {
            return None;
        }
        let health = |member: &tripod_raft::MemberStatus| {
            let is_itself = member.node == status.node;
            let heard = measures.heard.iter().find(|(node, _)| *node == member.node);
            let matched = member.matched.map_or(0, |index| index.0);
            VoterHealth {
                answers: is_itself || heard.is_some_and(|(_, ago)| *ago <= SILENT_AFTER),
                is_current: is_itself || status.committed.0.saturating_sub(matched) <= BEHIND_ENTRIES,
            }
        };
        let voters: Vec<_> = status.members.iter().filter(|member| member.voter).map(health).collect();
        Some(Self::of(&voters, is_changing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: VoterHealth = VoterHealth { answers: true, is_current: true };
    const SILENT: VoterHealth = VoterHealth { answers: false, is_current: true };
    const BEHIND: VoterHealth = VoterHealth { answers: true, is_current: false };

    fn told(voters: &[VoterHealth]) -> (usize, bool) {
        let tolerance = Tolerance::of(voters, false);
        (tolerance.failures, tolerance.change_safe)
    }

    #[test]
    fn every_voter_that_is_not_well_is_one_that_may_not_fail_any_more() {
        assert_eq!(told(&[WELL; 3]), (1, true));
        assert_eq!(told(&[WELL; 5]), (2, true));
        assert_eq!(told(&[WELL, WELL, SILENT]), (0, false));
        assert_eq!(told(&[WELL, WELL, BEHIND]), (0, false));
        assert_eq!(told(&[WELL, SILENT, SILENT]), (0, false));
        assert_eq!(told(&[WELL, WELL, WELL, WELL, SILENT]), (1, false));
        assert_eq!(told(&[WELL; 2]), (0, true), "two voters bear no loss, and may become three");
        assert_eq!(told(&[WELL]), (0, true));
        assert_eq!(told(&[]), (0, false));
    }

    #[test]
    fn one_change_at_a_time_is_safe() {
        let tolerance = Tolerance::of(&[WELL; 3], true);
        assert_eq!((tolerance.failures, tolerance.change_safe, tolerance.quorum), (1, false, 2));
    }
}
