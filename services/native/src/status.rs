//! Faults and outages to gRPC codes, with a machine-readable reason word in metadata.

pub(crate) mod level;
pub(crate) mod member;
pub(crate) mod mindspore;
pub(crate) mod token;

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tripod_gateway::{Outage, SaveError, by_class};
use tripod_state::runtime::Refusal;
use tripod_state::{Answer, BarrierFault, Fault, Reply};

use crate::text;

/// The reason of a task that was given up because nothing was heard of it.
pub(crate) const SILENT: &str = "task-silent";
/// The same where whoever started its process has said that it is no more.
pub(crate) const ENDED: &str = "task-ended";

/// Metadata key of the reason word. Clients decide by it, not by texts.
pub(crate) const REASON: &str = "tripod-reason";

/// The answer in a reply, or the refusal as a status.
pub(crate) fn answer(outcome: Result<Reply, Outage>) -> Result<Answer, Status> {
    outcome.map_err(|outage| of_outage(&outage))?.map_err(|fault| of_fault(&fault))
}

/// A refusal by the state machine.
pub(crate) fn of_fault(fault: &Fault) -> Status {
    with_reason(code(fault), reason(fault), text::of(fault))
}

/// Why the cluster could not answer.
pub(crate) fn of_outage(outage: &Outage) -> Status {
    match outage {
        Outage::NoLeader { waited_ms, last } => with_reason(
            Code::Unavailable,
            "no-leader",
            format!(
                "no leader for {waited_ms} ms ({last}); a majority of the nodes must be up: `tripod status`"
            ),
        ),
        Outage::Unknown(why) => with_reason(
            Code::Unavailable,
            "outcome-unknown",
            format!("the call may have taken effect: {why}; look before sending it again"),
        ),
        Outage::Overloaded(what) => with_reason(
            Code::ResourceExhausted,
            "overloaded",
            format!("this node is overloaded: {what}; send less, or ask another node"),
        ),
        Outage::DiskFull(why) => with_reason(Code::ResourceExhausted, "disk-full", why.clone()),
        Outage::JobFull(why) => with_reason(Code::ResourceExhausted, "job-full", why.clone()),
        Outage::StateFull(why) => with_reason(Code::ResourceExhausted, "state-full", why.clone()),
        Outage::Level(why) => with_reason(Code::FailedPrecondition, "level-too-low", why.clone()),
        Outage::Stopping => {
            with_reason(Code::Unavailable, "stopping", "this node is stopping; ask another node".to_owned())
        }
    }
}

/// Why a snapshot is not sent.
pub(crate) fn of_save(error: &SaveError) -> Status {
    match error {
        SaveError::Full { .. } => with_reason(
            Code::ResourceExhausted,
            "saves-full",
            format!("this node {error}; try again when one has ended, or ask another node"),
        ),
        SaveError::Stopped(why) => {
            Status::unavailable(format!("this node saves no snapshot: {why}; ask another node"))
        }
    }
}

/// The job of that name is another one than when the call began; the call was not executed.
pub(crate) fn job_replaced(name: &str) -> Status {
    let text =
        format!("job `{name}` was replaced while the call was under way; send it again as a new write");
    with_reason(Code::Aborted, "job-replaced", text)
}

/// The state machine answered with something that does not belong to the command: a defect of ours.
pub(crate) fn unexpected(answer: &Answer) -> Status {
    tracing::error!(?answer, "answer does not belong to the command");
    Status::internal("the answer does not belong to the command; please report this")
}

/// No sink of the audit log has taken the line of a call, and calls must not go on without.
pub(crate) fn audit_required() -> Status {
    let text = "T1537 audit-required: the call was not executed, as nothing has written it down within 100 ms, and this node has \
                --audit required; see `journalctl -u tripod | grep T1536`, or ask another node";
    with_reason(Code::Unavailable, "audit-required", text.to_owned())
}

fn with_reason(code: Code, reason: &'static str, text: String) -> Status {
    let mut status = Status::new(code, text);
    status.metadata_mut().insert(REASON, MetadataValue::from_static(reason));
    status
}

/// A fault's code. In this API a refusal is told as what it is.
fn code(fault: &Fault) -> Code {
    match fault {
        // The scheduler's own front end refuses its calls.
        Fault::Ray(_) => Code::FailedPrecondition,
        other => by_class(other.class()),
    }
}

/// A fault's reason word. Those of the coordination domains refuse no call of this API, but tasks and barriers are shown
/// with them. What has no word here is told by the word of its class.
pub(crate) fn reason(fault: &Fault) -> &'static str {
    match fault {
        Fault::JobUnknown { .. } => "job-unknown",
        Fault::JobExists { .. } => "job-exists",
        Fault::JobNameInvalid { .. } => "job-name-invalid",
        Fault::JobSpecInvalid { .. } => "job-spec-invalid",
        Fault::JobSlotsTaken { .. } => "job-slots-taken",
        Fault::ServiceMismatch { .. } => "service-mismatch",

        Fault::KeyExists { .. } => "key-exists",
        Fault::KeyMissing { .. } => "key-missing",
        Fault::NotAnInteger { .. } => "not-an-integer",
        Fault::IncrementOverflow { .. } => "increment-overflow",
        Fault::VersionMismatch { .. } => "version-mismatch",
        Fault::LimitExceeded { .. } => "limit-exceeded",

        Fault::SessionExpired => "session-expired",
        Fault::StampReused => "stamp-reused",
        Fault::ReplyForgotten => "reply-forgotten",
        Fault::SessionWindow { .. } => "session-window",

        Fault::TaskUnknown { .. } => "task-unknown",
        Fault::NotInAliveSet { .. } | Fault::ReportWithoutCode => "task-argument",
        Fault::VersionAhead { .. } => "version-ahead",
        Fault::RegistrationReplaced
        | Fault::Restarted { .. }
        | Fault::RegisteredInError { .. }
        | Fault::RegistrationFailed { .. } => "registration",
        Fault::BeatInError { .. } | Fault::BeatOfOtherLife { .. } | Fault::BeatUnregistered { .. } => {
            "heartbeat"
        }
        Fault::HeartbeatTimeout { .. } | Fault::TasksUnhealthy { .. } => SILENT,
        Fault::AlreadyDisconnected { .. } | Fault::ReporterNotConnected => "task-not-connected",
        Fault::Reported { .. } | Fault::Unheard { .. } | Fault::ShutdownFailed { .. } => "task-error",
        Fault::PollUnregistered { .. }
        | Fault::PollInError { .. }
        | Fault::PollReplaced
        | Fault::PollerLeft
        | Fault::PollReleased => "poll-ended",

        Fault::ArrivalReplaced { .. } => "arrival-replaced",
        Fault::Barrier { fault, .. } => barrier_reason(fault),
        Fault::Runtime(refusal) => runtime_reason(refusal),
        Fault::Member(refusal) => member::reason(refusal),
        Fault::Level(refusal) => level::reason(refusal),
        Fault::Ray(_) => "scheduler",
        Fault::Mindspore(refusal) => mindspore::reason(refusal),
        Fault::Token(refusal) => token::reason(refusal),
        Fault::NotAuthorised(_) => "not-authorised",
        #[allow(unreachable_patterns, reason = "a fault that is new needs no word here")]
        other => other.class().word(),
    }
}

fn runtime_reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotInitializing | Refusal::NotRunning { .. } => "runtime-phase",
        Refusal::TaskUnknown { .. } => "task-unknown",
        Refusal::Replaced { .. } => "registration",
        Refusal::Lost { .. } => "task-silent",
        Refusal::BarrierUsed | Refusal::BarrierSpoiled => "barrier-ended",
        Refusal::TimedOut { .. } => "runtime-timed-out",
    }
}

fn barrier_reason(fault: &BarrierFault) -> &'static str {
    match fault {
        BarrierFault::TimedOut { .. } => "barrier-timed-out",
        BarrierFault::UnknownMember { .. }
        | BarrierFault::ConflictingTasks
        | BarrierFault::ListMissing
        | BarrierFault::NotAMember { .. } => "barrier-members",
        BarrierFault::MemberInError { .. } | BarrierFault::MemberLost { .. } => "barrier-member-lost",
        BarrierFault::CounterMismatch { .. } | BarrierFault::CancelOfOtherInstance { .. } => {
            "barrier-counter"
        }
        BarrierFault::Cancelled { .. } => "barrier-cancelled",
        BarrierFault::CancelAfterEnd { .. } => "barrier-ended",
        BarrierFault::StaleArrival { .. } => "barrier-stale-arrival",
    }
}

#[cfg(test)]
#[path = "../../../state/tests/faults/samples.rs"]
mod samples;

#[cfg(test)]
mod tests {
    use tripod_state::ids::{JobName, Key};

    use super::*;

    fn reason(status: &Status) -> &str {
        status.metadata().get(REASON).and_then(|value| value.to_str().ok()).expect("a reason")
    }

    #[test]
    fn every_fault_is_told_as_written() {
        samples::check_transcript("tests/faults.txt", |fault| {
            let status = of_fault(fault);
            format!("{:?} {} {:?}", status.code(), reason(&status), status.message())
        });
    }

    #[test]
    fn a_refusal_has_code_reason_and_a_next_step() {
        let status = of_fault(&Fault::JobUnknown { name: Some(JobName::from("train")) });
        assert_eq!((status.code(), reason(&status)), (Code::NotFound, "job-unknown"));
        assert_eq!(
            status.message(),
            "there is no job `train`; see the jobs with `tripod job list`, or create it with \
             `tripod job create train --tasks N`"
        );
    }

    #[test]
    fn only_certainly_unexecuted_calls_are_plainly_unavailable() {
        let none = of_outage(&Outage::NoLeader { waited_ms: 5, last: "election".into() });
        assert_eq!((none.code(), reason(&none)), (Code::Unavailable, "no-leader"));
        let unknown = of_outage(&Outage::Unknown("leader lost".into()));
        assert_eq!(reason(&unknown), "outcome-unknown");
    }

    #[test]
    fn clients_can_tell_a_lost_race_from_a_wrong_request() {
        let raced = of_fault(&Fault::VersionMismatch { key: Key::from("k"), expected: 1, current: 2 });
        assert_eq!((raced.code(), reason(&raced)), (Code::FailedPrecondition, "version-mismatch"));
        let wrong = of_fault(&Fault::JobNameInvalid { name: "A b".into() });
        assert_eq!((wrong.code(), reason(&wrong)), (Code::InvalidArgument, "job-name-invalid"));
    }
}
