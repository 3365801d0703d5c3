//! How many voters may be lost, and whether a change of members is safe, as whoever leads knows: by the rules of
//! `tripod status` and `tripod diagnose`.

use std::time::Duration;

use tripod_gateway::{Measures, MemberStatus, Role, Status};
use tripod_sight::{Member, Safety, safety};

/// A voter that the leader has not heard for longer does not answer: several times what an election takes.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// `None`: this node does not lead.
pub(super) fn known_by(status: &Status, measures: &Measures, is_changing: bool) -> Option<Safety> {
    if status.role != Role::Leader {
        return None;
    }
    let member = |member: &MemberStatus| {
        let is_itself = member.node == status.node;
        let heard = measures.heard.iter().find(|(node, _)| *node == member.node);
        let lacks = status.committed.0.saturating_sub(member.matched.map_or(0, |index| index.0));
        Member {
            node: member.node.0,
            voter: member.voter,
            answers: is_itself || heard.is_some_and(|(_, ago)| *ago <= SILENT_AFTER),
            cut: false,
            lag_entries: Some(if is_itself { 0 } else { lacks }),
            leaving: false,
        }
    };
    let members: Vec<Member> = status.members.iter().map(member).collect();
    Some(safety(&members, true, is_changing))
}

#[cfg(test)]
mod tests {
    use tripod_gateway::Gateway;
    use tripod_state::ids::{LogIndex, NodeId};

    use super::*;

    fn told(node_2: (u64, Duration), is_changing: bool) -> Option<(usize, bool)> {
        let (matched, heard) = node_2;
        let voter = |node, matched| MemberStatus {
            node: NodeId(node),
            peer: "a:1".into(),
            voter: true,
            matched: Some(LogIndex(matched)),
        };
        let mut status = leader();
        status.committed = LogIndex(20_000);
        status.members = vec![voter(1, 0), voter(2, matched), voter(3, 20_000)];
        let second = Duration::from_secs(1);
        let measures =
            Measures { heard: vec![(NodeId(2), heard), (NodeId(3), second)], ..Measures::default() };
        known_by(&status, &measures, is_changing).map(|safety| (safety.tolerance, safety.change_safe))
    }

    /// Node 1 of a cluster in memory.
    fn leader() -> Status {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { Gateway::in_memory().0.admin().status() })
    }

    #[test]
    fn a_voter_that_is_silent_or_far_behind_is_one_that_may_not_fail_any_more() {
        let second = Duration::from_secs(1);
        assert_eq!(told((19_000, second), false), Some((1, true)));
        assert_eq!(told((9_000, second), false), Some((0, false)), "it lacks more than 10,000 entries");
        assert_eq!(told((19_000, 3 * second), false), Some((0, false)));
        assert_eq!(told((19_000, second), true), Some((1, false)));
        let follows = Status { role: Role::Follower, ..leader() };
        assert_eq!(known_by(&follows, &Measures::default(), false), None);
    }
}
