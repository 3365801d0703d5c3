//! The one table from refusals and outages to what a client is told: code, text and reason word.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tripod_dial::Refused;
use tripod_gateway::{Outage, by_class};
use tripod_proto::metadata;
use tripod_state::ray::Refusal;
use tripod_state::ray::view::Reason;
use tripod_state::{Fault, Reply, level, ray};

/// A refusal as it is told: by itself, or as one result of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusalStatus {
    pub(crate) code: Code,
    /// What programs go by; the trailer `x-tripod-reason`.
    pub(crate) reason: &'static str,
    /// What people read.
    pub(crate) text: String,
}

/// A request that cannot be read.
pub(crate) fn invalid(text: &str) -> Status {
    with_reason(Status::invalid_argument(text), "invalid")
}

/// An address that is not connected to. Nothing was executed.
pub(crate) fn not_dialled(refused: &Refused) -> Status {
    let text = refused.to_string();
    let status = match refused {
        Refused::Malformed(_) => return invalid(&text),
        _ => Status::permission_denied(text),
    };
    with_reason(status, "dial-refused")
}

/// An answer of another kind than the request's.
pub(crate) fn unexpected(answer: &impl std::fmt::Debug) -> Status {
    tracing::warn!(?answer, "an answer to another question");
    Status::internal("the scheduler gave an answer to another question")
}

/// A place in a session that was used for a call of another kind. Nothing was executed.
pub(crate) fn reused() -> Status {
    let text = "this place in the session was used for another call";
    with_reason(Status::failed_precondition(text), "sequence-reused")
}

/// A reply of the state machine; the second value says whether it is that of an earlier attempt.
pub(crate) fn answer(reply: Result<Reply, Outage>) -> Result<(ray::Answer, bool), Status> {
    match reply {
        Ok(Ok(tripod_state::Answer::Ray(ray::Answer::Replayed(first)))) => Ok((*first, true)),
        Ok(Ok(tripod_state::Answer::Ray(answer))) => Ok((answer, false)),
        Ok(Ok(other)) => Err(unexpected(&other)),
        Ok(Err(fault)) => Err(of_fault(&fault)),
        Err(outage) => Err(of_outage(&outage)),
    }
}

pub(crate) fn of_fault(fault: &Fault) -> Status {
    match fault {
        Fault::Ray(refusal) => of_refusal(refusal),
        Fault::JobUnknown { name } => {
            let name = name.as_ref().map_or("of that id", |name| name.as_str());
            let text =
                format!("no job {name}; `tripod job create` makes one, metadata x-tripod-job names one");
            with_reason(Status::not_found(text), "no-job")
        }
        Fault::LimitExceeded { what, limit, actual } => {
            let text = format!("{what}: {actual}, and the limit is {limit}");
            with_reason(Status::resource_exhausted(text), "full")
        }
        Fault::Level(level::Refusal::TooLow { needs, level, .. }) => {
            let text = format!(
                "schedulers need feature level {}, and {} is in force; \
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
        Fault::StampReused => reused(),
        other => {
            let class = other.class();
            with_reason(Status::new(by_class(class), other.text()), class.word())
        }
    }
}

pub(crate) fn of_refusal(refusal: &Refusal) -> Status {
    let RefusalStatus { code, reason, text } = told(refusal);
    with_reason(Status::new(code, text), reason)
}

/// What the cluster's own trouble is told as. It can be sent again with the same stamp, to any node.
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

pub(crate) fn with_reason(mut status: Status, reason: &'static str) -> Status {
    status.metadata_mut().insert(metadata::RAY_REASON, MetadataValue::from_static(reason));
    status
}

fn with_outage(mut status: Status, word: &'static str) -> Status {
    status.metadata_mut().insert(metadata::OUTAGE, MetadataValue::from_static(word));
    status
}

/// The table.
pub(crate) fn told(refusal: &Refusal) -> RefusalStatus {
    RefusalStatus { code: by_class(refusal.class()), reason: reason(refusal), text: text(refusal) }
}

fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::FunctionUnknown { .. } => "no-function",
        Refusal::WorkerUnknown { .. } => "no-worker",
        Refusal::StoreUnknown { .. } => "no-store",
        Refusal::ObjectUnknown { .. } => "no-object",
        Refusal::WorkerExpired { .. } | Refusal::StoreExpired { .. } => "expired",
        Refusal::NoStore { .. } => "no-store",
        Refusal::ArgumentUnknown { .. } => "no-object",
        Refusal::ObjectDeallocated { .. } | Refusal::ArgumentDeallocated { .. } => "deallocated",
        Refusal::Invalid { .. } | Refusal::AliasOfItself { .. } | Refusal::AliasCycle { .. } => "invalid",
        Refusal::NotOwned { .. } => "not-owned",
        Refusal::TooFewReferences { .. } => "too-few-references",
        Refusal::AliasedAlready { .. } | Refusal::AliasOfValue { .. } | Refusal::ReadyAlias { .. } => {
            "aliased"
        }
        Refusal::ContainedAlready { .. } => "contained",
        Refusal::IsDriver { .. } => "driver",
        Refusal::OtherAttempt { .. } => "other-attempt",
        Refusal::SessionExpired => "session-expired",
        Refusal::AnswerForgotten => "answer-forgotten",
        Refusal::SessionWindow { .. } => "session-window",
        Refusal::Full { .. } => "full",
    }
}

fn text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::FunctionUnknown { name } => format!("no worker has registered function {name}"),
        Refusal::WorkerUnknown { worker } => format!("there is no worker {worker}"),
        Refusal::WorkerExpired { worker } => format!("worker {worker} was given up; register again"),
        Refusal::StoreUnknown { store } => format!("there is no object store {store}"),
        Refusal::StoreExpired { store } => format!("object store {store} was given up; register again"),
        Refusal::NoStore { host, address } => {
            let place = if address.is_empty() { format!("on host {host}") } else { format!("at {address}") };
            format!("no object store {place}; start one there with `tripod objstore`, then register again")
        }
        Refusal::ObjectUnknown { object } => format!("there is no object {object}"),
        Refusal::ObjectDeallocated { object } => format!("object {object} was deallocated"),
        Refusal::ArgumentUnknown { place, object } => {
            format!("argument {place} refers to object {object}, which does not exist")
        }
        Refusal::ArgumentDeallocated { place, object } => {
            format!("argument {place} refers to object {object}, which was deallocated")
        }
        Refusal::Invalid { field, reason } => format!("{field}: {reason}"),
        Refusal::NotOwned { process, object } => {
            format!("process {process} has no reference to object {object} to give away or drop")
        }
        Refusal::TooFewReferences { object, held, dropped } => {
            format!("{dropped} references to object {object} were to be dropped, and there are {held}")
        }
        Refusal::AliasedAlready { alias, target } => {
            format!("object {alias} means object {target} already")
        }
        Refusal::AliasOfItself { alias } => format!("object {alias} cannot mean itself"),
        Refusal::AliasCycle { alias, target } => {
            format!("object {alias} cannot mean object {target}, which means object {alias}")
        }
        Refusal::AliasOfValue { alias } => {
            format!("object {alias} has a value of its own, so it cannot mean another")
        }
        Refusal::ReadyAlias { object, target } => {
            format!("object {object} means object {target}, so it has no value of its own")
        }
        Refusal::ContainedAlready { object } => {
            format!("the contained objects of object {object} are known already")
        }
        Refusal::IsDriver { worker } => format!("{worker} is a driver, which executes no tasks"),
        Refusal::OtherAttempt { operation } => {
            format!("task {operation} was given to another attempt meanwhile")
        }
        Refusal::SessionExpired => "session expired".to_owned(),
        Refusal::AnswerForgotten => "the answer to this call is not remembered any more".to_owned(),
        Refusal::SessionWindow { limit } => {
            format!("more than {limit} calls of the session are without an acknowledged answer")
        }
        Refusal::Full { what, limit } => format!("{what}: the limit of {limit} is reached; try again later"),
    }
}

/// Why an object cannot be had, in the protocol's word.
pub(crate) fn reason_word(reason: Reason) -> String {
    match reason {
        Reason::PutObject => "PUT_OBJECT".to_owned(),
        Reason::RetriesExhausted => "RETRIES_EXHAUSTED".to_owned(),
        Reason::LineageEvicted => "LINEAGE_EVICTED".to_owned(),
        Reason::NoSuchFunction => "NO_SUCH_FUNCTION".to_owned(),
        Reason::DependencyFailed(object) => format!("DEPENDENCY_FAILED({object})"),
        Reason::ReconstructionDisabled => "RECONSTRUCTION_DISABLED".to_owned(),
        Reason::Cancelled => "CANCELLED".to_owned(),
    }
}

/// The same in words.
pub(crate) fn reason_text(reason: Reason) -> String {
    match reason {
        Reason::PutObject => {
            "it was put by a process and its last copy is lost: there is no task to make it again".to_owned()
        }
        Reason::RetriesExhausted => {
            "the workers that were to make it died, and its attempts are exhausted".to_owned()
        }
        Reason::LineageEvicted => {
            "its last copy is lost, and how it was made was forgotten for want of room".to_owned()
        }
        Reason::NoSuchFunction => {
            "its last copy is lost, and no worker has the function that made it".to_owned()
        }
        Reason::DependencyFailed(object) => format!("object {object}, which it is made from, cannot be had"),
        Reason::ReconstructionDisabled => "its last copy is lost, and it is not to be made again".to_owned(),
        Reason::Cancelled => "the task that was to make it was cancelled".to_owned(),
    }
}

#[cfg(test)]
#[path = "../../../state/tests/faults/samples.rs"]
mod samples;

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::{ObjectId, WorkerId};

    use super::*;

    fn word(status: &Status) -> &str {
        status.metadata().get(metadata::RAY_REASON).expect("a reason").to_str().unwrap()
    }

    #[test]
    fn every_fault_is_told_as_written() {
        samples::check_transcript("tests/faults.txt", |fault| {
            let status = of_fault(fault);
            let headers = status.metadata().clone().into_headers();
            format!("{:?} {:?} {headers:?}", status.code(), status.message())
        });
    }

    #[test]
    fn fenced_processes_and_closed_sessions_are_told_so() {
        let expired = of_refusal(&Refusal::WorkerExpired { worker: WorkerId(3) });
        assert_eq!((expired.code(), word(&expired)), (Code::FailedPrecondition, "expired"));
        let session = of_refusal(&Refusal::SessionExpired);
        assert_eq!((session.code(), session.message()), (Code::FailedPrecondition, "session expired"));
        assert_eq!(word(&session), "session-expired");
    }

    #[test]
    fn a_host_without_a_store_is_named_with_the_next_command() {
        let told = of_refusal(&Refusal::NoStore { host: "10.0.0.9".into(), address: String::new() });
        assert_eq!(told.code(), Code::Unavailable);
        assert!(told.message().contains("10.0.0.9") && told.message().contains("tripod objstore"), "{told}");
        let at = of_refusal(&Refusal::NoStore { host: "h".into(), address: "10.0.0.9:1".into() });
        assert!(at.message().contains("at 10.0.0.9:1"), "{at}");
    }

    #[test]
    fn the_codes_of_wrong_aliases_are_upstreams_faults_as_errors() {
        let (alias, target) = (ObjectId(1), ObjectId(2));
        let code = |refusal: &Refusal| told(refusal).code;
        assert_eq!(code(&Refusal::AliasedAlready { alias, target }), Code::FailedPrecondition);
        assert_eq!(code(&Refusal::AliasOfItself { alias }), Code::InvalidArgument);
        assert_eq!(code(&Refusal::AliasCycle { alias, target }), Code::InvalidArgument);
        assert_eq!(code(&Refusal::ObjectUnknown { object: alias }), Code::NotFound);
    }

    #[test]
    fn an_outage_is_not_the_schedulers_word() {
        let outage = of_outage(&Outage::NoLeader { waited_ms: 5, last: "gone".to_owned() });
        assert_eq!(outage.code(), Code::Unavailable);
        assert!(!outage.metadata().contains_key(metadata::RAY_REASON));
        assert_eq!(outage.metadata().get(metadata::OUTAGE).unwrap(), metadata::OUTAGE_NO_LEADER);
    }
}
