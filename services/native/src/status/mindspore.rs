//! Reason words of what MindSpore's schedulers refuse.

use tonic::Status;
use tripod_state::Fault;
use tripod_state::mindspore::Refusal;

use super::{code, of_fault, with_reason};
use crate::text;

/// The reason words of the state's refusals.
pub(crate) fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotReady { .. } | Refusal::NotInitialized | Refusal::NotFormed | Refusal::Ending => {
            "mindspore-not-ready"
        }
        Refusal::WorkersFixed
        | Refusal::NothingToScale
        | Refusal::NoServer { .. }
        | Refusal::FirstServer { .. }
        | Refusal::NodeUnknown { .. }
        | Refusal::NodeLeft { .. } => "mindspore-scale",
        Refusal::NotAbortable => "mindspore-nothing-to-abort",
        Refusal::Outdated { .. } => "mindspore-plan",
        Refusal::OtherRole { .. } | Refusal::Full { .. } | Refusal::Replaced { .. } => "mindspore-node",
    }
}

/// A refusal that is about the cluster of this job.
pub(crate) fn of(fault: &Fault, job: &str) -> Status {
    match fault {
        Fault::Mindspore(refusal) => {
            with_reason(code(fault), reason(refusal), text::mindspore::of_refusal(refusal, job))
        }
        other => of_fault(other),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tripod_state::ids::NodeName;
    use tripod_state::mindspore::cluster::ClusterState;

    use super::*;

    #[test]
    fn a_refusal_names_the_job_in_the_next_command() {
        let refusal = Refusal::NotReady { state: ClusterState::ScaleOut, nodes: 0 };
        let status = of(&Fault::Mindspore(refusal), "fl");
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("`tripod mindspore state --job fl`"), "{status}");
        let first = of(&Fault::Mindspore(Refusal::FirstServer { node: NodeName::from("s0") }), "fl");
        assert_eq!(first.metadata().get("tripod-reason").unwrap(), "mindspore-scale");
    }
}
