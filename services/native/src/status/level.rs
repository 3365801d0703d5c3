//! Reason words of what was refused for the sake of the feature level.

use tonic::{Code, Status};
use tripod_gateway::LevelError;
use tripod_state::level::Refusal;

use super::{of_fault, with_reason};

/// The reason words of the state's refusals.
pub(crate) fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::TooLow { .. } => "level-too-low",
        Refusal::NotAbove { .. } | Refusal::NotHeard { .. } => "level-not-raised",
        Refusal::NoPin { .. } => "level-not-pinned",
        Refusal::Notes { .. }
        | Refusal::Drained { .. }
        | Refusal::Schedulers { .. }
        | Refusal::Clusters { .. }
        | Refusal::Scheduled { .. }
        | Refusal::Sessions { .. }
        | Refusal::Floor { .. } => "level-data",
    }
}

/// Why the level was not shown or changed.
pub(crate) fn of(error: &LevelError) -> Status {
    match error {
        LevelError::NotLeader { leader } => {
            let text = match leader {
                Some(leader) => format!("the level is changed by the leader, which is node {leader}; ask it"),
                None => {
                    "no node is known to lead; a majority of the nodes must be up: `tripod status`".to_owned()
                }
            };
            with_reason(Code::FailedPrecondition, "not-leader", text)
        }
        LevelError::Refused(refusal) => of_fault(&refusal.clone().into()),
        LevelError::Unsupported(why) => {
            with_reason(Code::FailedPrecondition, "level-unsupported", why.clone())
        }
        LevelError::Unknown(why) => with_reason(
            Code::Unavailable,
            "outcome-unknown",
            format!("the level may have been changed: {why}; look with `tripod level show`"),
        ),
        LevelError::Unavailable(why) => with_reason(
            Code::Unavailable,
            "no-leader",
            format!("the level was not changed: {why}; see who leads with `tripod status`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{FeatureLevel, JobName, NodeId};

    use super::*;

    #[test]
    fn what_keeps_the_level_up_is_named_with_the_command_that_takes_it_away() {
        let jobs = vec![JobName::from("train")];
        let refusal = Refusal::Notes { needs: FeatureLevel(2), count: 1, jobs };
        let status = of(&LevelError::Refused(refusal));
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("`tripod job note train ''`"), "{status}");
        let status = of(&LevelError::NotLeader { leader: Some(NodeId(2)) });
        assert_eq!(status.metadata().get("tripod-reason").unwrap(), "not-leader");
    }
}
