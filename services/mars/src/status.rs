//! The one table from refusals and outages to what a client is told: code, text and reason word.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tripod_gateway::{Outage, by_class};
use tripod_proto::metadata;
use tripod_state::{Answer, Fault, Reply, level};
use tripod_tile::{Reason, Refusal};

/// A request that cannot be read.
pub(crate) fn invalid(text: &str) -> Status {
    with_reason(Status::invalid_argument(text), "invalid-argument")
}

/// More than there may be.
pub(crate) fn too_many(what: &str, is: usize, most: usize) -> Status {
    with_reason(Status::resource_exhausted(format!("{what}: {is}, and the limit is {most}")), "exhausted")
}

/// What a client may ask for, and nobody does here.
pub(crate) fn unimplemented(text: &str) -> Status {
    with_reason(Status::unimplemented(text), "unimplemented")
}

/// A graph that is not tiled: which node, and why.
pub(crate) fn untiled(refusal: &Refusal) -> Status {
    let text = refusal.to_string();
    match &refusal.reason {
        Reason::UnknownOperator(_) | Reason::TestHelper => unimplemented(&text),
        _ => invalid(&text),
    }
}

/// An answer of another kind than the request's: a defect of ours.
pub(crate) fn unexpected(answer: &impl std::fmt::Debug) -> Status {
    tracing::error!(?answer, "an answer to another question");
    Status::internal("the state gave an answer to another question; please report this")
}

/// The answer in a reply, or the refusal as a status.
pub(crate) fn answer(reply: Result<Reply, Outage>) -> Result<Answer, Status> {
    reply.map_err(|outage| of_outage(&outage))?.map_err(|fault| of_fault(&fault))
}

/// A refusal by the state.
pub(crate) fn of_fault(fault: &Fault) -> Status {
    match fault {
        Fault::Level(level::Refusal::TooLow { needs, level, .. }) => {
            let text = format!(
                "sessions and graphs need feature level {}, and {} is in force; \
                 it rises when the build of every node supports it, see `tripod level show`",
                needs.0, level.0
            );
            with_reason(Status::failed_precondition(text), "level")
        }
        // This node's own session, which it renews: nothing was executed, or it cannot be said.
        Fault::SessionExpired | Fault::SessionWindow { .. } => with_outage(
            Status::unavailable("this node's session has to be renewed"),
            metadata::OUTAGE_SESSION,
        ),
        Fault::ReplyForgotten => {
            with_outage(Status::unavailable("the outcome is not known"), metadata::OUTAGE_UNKNOWN)
        }
        other => {
            let class = other.class();
            with_reason(Status::new(by_class(class), other.text()), class.word())
        }
    }
}

/// What the cluster's own trouble is told as.
pub(crate) fn of_outage(outage: &Outage) -> Status {
    let text = outage.to_string();
    match outage {
        Outage::NoLeader { .. } => with_outage(Status::unavailable(text), metadata::OUTAGE_NO_LEADER),
        Outage::Unknown(_) => with_outage(Status::unavailable(text), metadata::OUTAGE_UNKNOWN),
        Outage::Stopping => with_outage(Status::unavailable(text), metadata::OUTAGE_STOPPING),
        Outage::Overloaded(_) => with_outage(Status::resource_exhausted(text), metadata::OUTAGE_OVERLOADED),
        Outage::DiskFull(_) => with_reason(Status::resource_exhausted(text), "disk-full"),
        Outage::JobFull(_) => with_reason(Status::resource_exhausted(text), "job-full"),
        Outage::StateFull(_) => with_reason(Status::resource_exhausted(text), "state-full"),
        Outage::Level(_) => with_reason(Status::failed_precondition(text), "level"),
    }
}

/// This node has no room for what would pass it.
pub(crate) fn overloaded(text: String) -> Status {
    with_outage(Status::resource_exhausted(text), metadata::OUTAGE_OVERLOADED)
}

pub(crate) fn with_reason(mut status: Status, reason: &'static str) -> Status {
    status.metadata_mut().insert(metadata::RAY_REASON, MetadataValue::from_static(reason));
    status
}

fn with_outage(mut status: Status, word: &'static str) -> Status {
    status.metadata_mut().insert(metadata::OUTAGE, MetadataValue::from_static(word));
    status
}

/// Whether the call may be made again elsewhere, where the leader may be reached.
pub(crate) fn is_outage(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.metadata().contains_key(metadata::OUTAGE)
}

#[cfg(test)]
#[path = "../../../state/tests/faults/samples.rs"]
mod samples;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told_as_written() {
        samples::check_transcript("tests/faults.txt", |fault| {
            let status = of_fault(fault);
            let headers = status.metadata().clone().into_headers();
            format!("{:?} {:?} {headers:?}", status.code(), status.message())
        });
    }

    #[test]
    fn an_operator_that_is_unknown_or_turned_off_is_not_implemented_and_other_mistakes_are_the_callers() {
        let told = |reason| untiled(&Refusal { node: Some("a".into()), reason });
        let unknown = told(Reason::UnknownOperator("sort".to_owned()));
        assert_eq!(
            (unknown.code(), unknown.message()),
            (Code::Unimplemented, "tileable a: unknown operator sort")
        );
        assert_eq!(told(Reason::TestHelper).code(), Code::Unimplemented);
        let axis = told(Reason::Axis { axis: -4, dims: 2 });
        assert_eq!((axis.code(), axis.message()), (Code::InvalidArgument, "tileable a: axis -4 of 2"));
    }

    #[test]
    fn an_outage_is_not_the_states_word() {
        let outage = of_outage(&Outage::NoLeader { waited_ms: 5, last: "gone".to_owned() });
        assert!(is_outage(&outage));
        assert!(!outage.metadata().contains_key(metadata::RAY_REASON));
        assert!(!is_outage(&invalid("no")));
    }
}
