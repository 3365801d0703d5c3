//! Codes and reason words of refused changes of the members.

use tonic::{Code, Status};
use tripod_gateway::{ChangeError, Unwise};
use tripod_state::member::{Change, Refusal};

use super::{of_fault, with_reason};
use crate::text;

/// The reason words of the registry's refusals.
pub(crate) fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::InProgress { .. } => "change-in-progress",
        Refusal::NodeUnknown { .. } => "member-unknown",
        Refusal::NodeRemoved { .. } => "member-removed",
        Refusal::AddressTaken { .. } => "address-taken",
        Refusal::HadData { .. } => "member-had-data",
        Refusal::NotOpen { .. } => "change-not-open",
        Refusal::NameBound { .. } | Refusal::NameTaken { .. } | Refusal::NameInvalid { .. } => "member-name",
    }
}

fn unwise(unwise: &Unwise) -> (Code, &'static str) {
    match unwise {
        Unwise::Address(_) => (Code::InvalidArgument, "address-malformed"),
        Unwise::NoMember { .. } => (Code::FailedPrecondition, "member-not-added"),
        Unwise::Voter { .. } | Unwise::Learner { .. } | Unwise::SameAddress { .. } => {
            (Code::FailedPrecondition, "nothing-to-change")
        }
        Unwise::Stranger { .. } => (Code::FailedPrecondition, "address-stranger"),
        Unwise::Silent { .. } => (Code::FailedPrecondition, "member-silent"),
        Unwise::Lagging { .. } => (Code::FailedPrecondition, "member-lagging"),
        Unwise::NobodyElse { .. } => (Code::FailedPrecondition, "nobody-else"),
        Unwise::LastVoter { .. } => (Code::FailedPrecondition, "last-voter"),
        Unwise::QuorumLost { .. } => (Code::FailedPrecondition, "quorum-lost"),
        Unwise::TooOld { .. } => (Code::FailedPrecondition, "level-too-old"),
    }
}

/// Why a change did not begin. `change`: what was asked for, if it was a change.
pub(crate) fn of_change(error: &ChangeError, change: Option<&Change>) -> Status {
    match (error, change) {
        (ChangeError::NotLeader { leader }, _) => {
            let text = match leader {
                Some(leader) => format!("members are changed by the leader, which is node {leader}; ask it"),
                None => {
                    "no node is known to lead; a majority of the nodes must be up: `tripod status`".to_owned()
                }
            };
            with_reason(Code::FailedPrecondition, "not-leader", text)
        }
        (ChangeError::Refused(fault), _) => of_fault(fault),
        (ChangeError::Unwise(why), Some(change)) => {
            let (code, reason) = unwise(why);
            with_reason(code, reason, text::member::of_unwise(why, change))
        }
        (ChangeError::Unwise(why), None) => {
            let (code, reason) = unwise(why);
            let told = match why {
                Unwise::NobodyElse { node } => text::member::nobody_else(*node),
                why => format!("{why:?}"),
            };
            with_reason(code, reason, told)
        }
        (ChangeError::Unknown(why), _) => with_reason(
            Code::Unavailable,
            "outcome-unknown",
            format!("the change may have begun: {why}; look with `tripod member list`"),
        ),
        (ChangeError::Unavailable(why), _) => with_reason(
            Code::Unavailable,
            "no-leader",
            format!("the change was not begun: {why}; see who leads with `tripod status`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{ChangeId, NodeId, TimeMs};
    use tripod_state::member::Open;

    use super::*;

    #[test]
    fn the_second_of_two_operators_is_told_whose_change_it_is_and_how_to_go_on() {
        let change = Change::Remove { node: NodeId(3) };
        let open = Open {
            id: ChangeId(77),
            change: change.clone(),
            node: NodeId(3),
            by: "root@ops".to_owned(),
            since: TimeMs(0),
            cancelled: false,
        };
        let refused = ChangeError::Refused(Refusal::InProgress { open: Box::new(open) }.into());
        let status = of_change(&refused, Some(&Change::Demote { node: NodeId(2) }));
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().starts_with("change in progress by root@ops: remove 3;"), "{status}");
        assert!(status.message().contains("`tripod member cancel 77`"), "{status}");
    }

    #[test]
    fn a_node_that_does_not_lead_says_who_does() {
        let status = of_change(&ChangeError::NotLeader { leader: Some(NodeId(2)) }, None);
        assert!(status.message().contains("node 2"), "{status}");
        assert_eq!(status.metadata().get("tripod-reason").unwrap(), "not-leader");
        let lag = Unwise::Lagging { node: NodeId(4), entries: 3_500, limit: 1_000 };
        let status = of_change(&ChangeError::Unwise(lag), Some(&Change::Promote { node: NodeId(4) }));
        assert!(status.message().contains("3500 entries behind"), "{status}");
        assert_eq!(status.metadata().get("tripod-reason").unwrap(), "member-lagging");
    }
}
