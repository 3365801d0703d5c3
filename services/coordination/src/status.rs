//! The one table from the domain's refusals and the cluster's outages to what a client is told:
//! code, text and payloads. The codes are those of absl, which are gRPC's.
//!
//! Source of codes and payloads: openxla/xla `xla/pjrt/distributed/coordination/`
//! (`coordination_service.cc`, `coordination_service_rpc_handler.cc`); the texts are in
//! [`crate::text`].

use tonic::{Code, Status};
use tripod_gateway::{Outage, by_class};
use tripod_port::refusal::{again_soon, never_again, with_outage};
use tripod_proto::metadata;
use tripod_state::{BarrierFault, Fault};

use crate::dialect::Dialect;
use crate::l;
use crate::names::Voice;
use crate::payload::{Payload, container};
use crate::text;

/// Bytes of a message that upstream sends; the rest is cut off.
const MESSAGE_BYTES_MAX: usize = 3072;
/// What stands for the rest.
const CUT_MARK: &str = " ... [truncated]";

/// A refusal as a client of one dialect sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// As a task reported it, or a gRPC code. A watch shows it raw.
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) payloads: Vec<Payload>,
}

impl Rendered {
    pub(crate) fn of(fault: &Fault, voice: Voice<'_>) -> Self {
        Self { code: code(fault), message: text::of(fault, voice), payloads: payloads(fault) }
    }

    /// As absl prints a status inside another one's text.
    pub(crate) fn print(&self, voice: Voice<'_>) -> String {
        let mut text = format!("{}: {}", code_name(self.code), self.message);
        for payload in &self.payloads {
            text.push_str(&payload.print(voice));
        }
        text
    }
}

/// What the caller is answered.
pub(crate) fn of_fault(fault: &Fault, voice: Voice<'_>) -> Status {
    // Only callers with stamps of their own are told of their sessions: this node renews its own.
    let session = match fault {
        Fault::SessionExpired | Fault::SessionWindow { .. } => Some(metadata::OUTAGE_SESSION),
        Fault::ReplyForgotten => Some(metadata::OUTAGE_UNKNOWN),
        _ => None,
    };
    if let Some(word) = session {
        return with_outage(Status::unavailable(text::of(fault, voice)), word);
    }
    if voice.dialect == Dialect::L {
        return l::status::of_fault(fault);
    }
    let rendered = Rendered::of(fault, voice);
    let code = match fault {
        Fault::Reported { code, .. } => propagated(*code),
        _ => Code::from_i32(rendered.code),
    };
    let status = Status::with_details(code, cut(rendered.message), container(&rendered.payloads, voice));
    never_again(status)
}

/// What the caller is answered when the cluster could not decide. There is no payload: that is how
/// a client tells a failed transport, which it may repeat, from an error of the service.
pub(crate) fn of_outage(outage: &Outage) -> Status {
    let code = match outage {
        Outage::NoLeader { .. } | Outage::Unknown(_) | Outage::Stopping => Code::Unavailable,
        Outage::Overloaded(_) | Outage::DiskFull(_) | Outage::JobFull(_) | Outage::StateFull(_) => {
            Code::ResourceExhausted
        }
        Outage::Level(_) => Code::FailedPrecondition,
    };
    let word = match outage {
        Outage::NoLeader { .. } => metadata::OUTAGE_NO_LEADER,
        Outage::Unknown(_) => metadata::OUTAGE_UNKNOWN,
        Outage::Overloaded(_) => metadata::OUTAGE_OVERLOADED,
        // Every node would refuse it, so this is the cluster's word: an agent must not repeat it.
        Outage::DiskFull(why) | Outage::JobFull(why) | Outage::StateFull(why) | Outage::Level(why) => {
            return never_again(Status::new(code, why));
        }
        Outage::Stopping => metadata::OUTAGE_STOPPING,
    };
    again_soon(with_outage(Status::new(code, outage.to_string()), word))
}

/// What a poll is answered when the cluster could not hold it.
pub(crate) fn of_released_poll(outage: &Outage) -> Status {
    Status::cancelled(text::poll_cancelled(&outage.to_string()))
}

/// What a poll is answered that gRPC would not repeat if its connection broke.
pub(crate) fn of_last_poll() -> Status {
    Status::cancelled(text::poll_cancelled("gRPC does not repeat this call once more."))
}

/// The code with which a task's own error reaches the others. CANCELLED would tell them that
/// polling is over and nothing is wrong, so it becomes ABORTED.
pub(crate) fn propagated(reported: i32) -> Code {
    match Code::from_i32(reported) {
        Code::Cancelled => Code::Aborted,
        code => code,
    }
}

/// The codes of upstream; what it does not know is told by its class.
fn code(fault: &Fault) -> i32 {
    let code = match fault {
        Fault::Reported { code, .. } => return *code,
        Fault::Barrier { fault, .. } => barrier_code(fault),
        Fault::PollReplaced | Fault::PollerLeft | Fault::PollReleased | Fault::ArrivalReplaced { .. } => {
            Code::Cancelled
        }
        Fault::TaskUnknown { .. }
        | Fault::BeatUnregistered { .. }
        | Fault::ReportWithoutCode
        | Fault::NotInAliveSet { .. }
        | Fault::VersionAhead { .. } => Code::InvalidArgument,
        Fault::KeyMissing { .. } => Code::NotFound,
        Fault::RegistrationReplaced | Fault::KeyExists { .. } => Code::AlreadyExists,
        Fault::AlreadyDisconnected { .. }
        | Fault::ReporterNotConnected
        | Fault::PollUnregistered { .. }
        | Fault::PollInError { .. }
        | Fault::NotAnInteger { .. }
        | Fault::IncrementOverflow { .. }
        // No call of these protocols asks for one.
        | Fault::Member(_)
        | Fault::Level(_)
        | Fault::Ray(_) => Code::FailedPrecondition,
        Fault::RegisteredInError { .. }
        | Fault::Restarted { .. }
        | Fault::BeatInError { .. }
        | Fault::BeatOfOtherLife { .. }
        | Fault::VersionMismatch { .. } => Code::Aborted,
        Fault::ServiceMismatch { .. }
        | Fault::RegistrationFailed { .. }
        | Fault::Unheard { .. }
        | Fault::ShutdownFailed { .. } => Code::Internal,
        Fault::HeartbeatTimeout { .. } | Fault::TasksUnhealthy { .. } => Code::Unavailable,
        Fault::Runtime(refusal) => l::status::code(refusal),
        other => by_class(other.class()),
    };
    code as i32
}

fn barrier_code(fault: &BarrierFault) -> Code {
    match fault {
        BarrierFault::TimedOut { .. } => Code::DeadlineExceeded,
        BarrierFault::UnknownMember { .. }
        | BarrierFault::ConflictingTasks
        | BarrierFault::ListMissing
        | BarrierFault::NotAMember { .. } => Code::InvalidArgument,
        BarrierFault::MemberInError { .. }
        | BarrierFault::MemberLost { .. }
        | BarrierFault::CounterMismatch { .. } => Code::Internal,
        BarrierFault::Cancelled { .. } | BarrierFault::StaleArrival { .. } => Code::Cancelled,
        BarrierFault::CancelOfOtherInstance { .. } | BarrierFault::CancelAfterEnd { .. } => {
            Code::FailedPrecondition
        }
    }
}

/// Most errors carry the plain mark; the exceptions are upstream's.
fn payloads(fault: &Fault) -> Vec<Payload> {
    match fault {
        Fault::KeyExists { .. } | Fault::NotInAliveSet { .. } | Fault::ArrivalReplaced { .. } => Vec::new(),
        Fault::Reported { task, .. } => {
            vec![Payload::Coordination { reported: true, source: Some(*task) }]
        }
        Fault::RegisteredInError { task, .. } | Fault::Restarted { task } => {
            vec![Payload::Coordination { reported: false, source: Some(*task) }]
        }
        Fault::Barrier { barrier, counter, .. } => {
            vec![Payload::MARK, Payload::Barrier { barrier: barrier.clone(), counter: *counter }]
        }
        Fault::ServiceMismatch { current, .. } => {
            vec![Payload::MARK, Payload::ServiceMismatch { current: *current }]
        }
        _ => vec![Payload::MARK],
    }
}

/// Cuts a message to upstream's length, at a character's end.
pub(crate) fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push_str(CUT_MARK);
    }
    message
}

/// The number of a result's code; no fault is OK.
pub(crate) fn code_number(result: Option<&Fault>) -> i32 {
    result.map_or(Code::Ok as i32, code)
}

/// absl's name of a code. A number that is no code has an empty name there.
fn code_name(code: i32) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "../../../state/tests/faults/samples.rs"]
mod samples;

#[cfg(test)]
mod tests {
    use tripod_port::{Cut, Short, refusal};
    use tripod_state::ids::TaskId;

    use super::*;

    #[test]
    fn every_fault_is_told_as_written() {
        samples::check_transcript("tests/faults.txt", |fault| {
            let told = [Dialect::N, Dialect::T, Dialect::L].map(|dialect| {
                let status = of_fault(fault, Voice::plain(dialect));
                let (code, text, details) =
                    (status.code(), status.message(), status.details().escape_ascii());
                let headers = status.metadata().clone().into_headers();
                format!("{dialect:?}: {code:?} {text:?} [{details}] {headers:?}")
            });
            format!("raw: {}\n{}", code(fault), told.join("\n"))
        });
    }

    fn reported(code: i32, message: &str) -> Fault {
        Fault::Reported { task: TaskId(1), code, message: message.to_owned() }
    }

    #[test]
    fn a_nested_status_is_printed_as_absl_does() {
        let print = |fault: &Fault, dialect| {
            let voice = Voice::plain(dialect);
            Rendered::of(fault, voice).print(voice)
        };
        let key = crate::payload::COORDINATION_KEY;
        assert_eq!(
            print(&reported(5, "boom"), Dialect::N),
            format!("NOT_FOUND: boom [{key}='\\x18\\x01 \\x01']")
        );
        assert_eq!(
            print(&reported(99, ""), Dialect::T),
            format!(":  [{key}='\\x18\\x01\\\"\\x02\\x10\\x01']")
        );
        let restarted = Fault::Restarted { task: TaskId(0) };
        assert!(print(&restarted, Dialect::T).ends_with(&format!(" [{key}='\\\"\\x00']")));
    }

    #[test]
    fn a_reported_code_is_told_without_doing_harm() {
        let told = |code| of_fault(&reported(code, "stop"), Voice::plain(Dialect::N)).code();
        assert_eq!(told(5), Code::NotFound);
        assert_eq!(told(1), Code::Aborted, "CANCELLED would say that nothing is wrong");
        assert_eq!(told(99), Code::Unknown);
        assert_eq!(told(-1), Code::Unknown);
    }

    #[test]
    fn a_long_message_is_cut_where_upstream_cuts_it() {
        assert_eq!(cut("x".repeat(3072)).len(), 3072);
        assert_eq!(cut("x".repeat(3073)), format!("{} ... [truncated]", "x".repeat(3072)));
        let cut = cut("\u{e4}".repeat(3000) + "x");
        assert!(cut.starts_with('\u{e4}') && cut.len() == 3072 + CUT_MARK.len());
    }

    #[test]
    fn an_outage_carries_no_payload() {
        let outage = Outage::NoLeader { waited_ms: 5, last: "gone".to_owned() };
        assert_eq!(of_outage(&outage).code(), Code::Unavailable);
        assert!(of_outage(&outage).details().is_empty());
        assert_eq!(of_outage(&Outage::Overloaded("full".to_owned())).code(), Code::ResourceExhausted);
        let full = of_outage(&Outage::DiskFull("no room".to_owned()));
        assert_eq!((full.code(), full.message()), (Code::ResourceExhausted, "no room"));
        assert!(!full.metadata().contains_key(metadata::OUTAGE), "nobody repeats it on another node");
        for outage in [Outage::JobFull("no room".to_owned()), Outage::StateFull("no room".to_owned())] {
            let told = of_outage(&outage);
            assert_eq!(
                (told.code(), told.message(), pushback(&told)),
                (full.code(), "no room", pushback(&full))
            );
        }
    }

    fn pushback(status: &Status) -> Option<&str> {
        status.metadata().get("grpc-retry-pushback-ms").map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_port_says_of_its_own_troubles_what_an_outage_says() {
        let told = |status: Status| {
            (status.code(), status.message().to_owned(), status.metadata().clone().into_headers())
        };
        let stopping = told(of_outage(&Outage::Stopping));
        assert_eq!(told(refusal::of_cut(Cut::Elsewhere)), stopping);
        let unknown = Outage::Unknown("the node is stopping".to_owned());
        assert_eq!(told(refusal::of_cut(Cut::Unknown)), told(of_outage(&unknown)));
        let short = Short::Stalled { seconds: 30 };
        assert_eq!(told(refusal::of_short(short)), told(of_outage(&short.into())));
    }

    #[test]
    fn a_genuine_unavailable_is_not_to_be_repeated() {
        for fault in [
            Fault::HeartbeatTimeout { task: TaskId(1) },
            Fault::TasksUnhealthy { tasks: vec![TaskId(1)] },
            reported(Code::Unavailable as i32, "lost"),
        ] {
            let status = of_fault(&fault, Voice::plain(Dialect::N));
            assert_eq!((status.code(), pushback(&status)), (Code::Unavailable, Some("-1")), "{fault:?}");
        }
        assert_eq!(pushback(&of_fault(&reported(5, "boom"), Voice::plain(Dialect::N))), None);
    }

    #[test]
    fn an_outage_is_to_be_repeated_later_and_ends_polls_for_good() {
        let no_leader = Outage::NoLeader { waited_ms: 5, last: "gone".to_owned() };
        for outage in [no_leader, Outage::Unknown("lost".to_owned()), Outage::Stopping] {
            assert_eq!(pushback(&of_outage(&outage)), Some("1000"), "{outage}");
            let released = of_released_poll(&outage);
            assert_eq!((released.code(), pushback(&released)), (Code::Cancelled, None), "{outage}");
        }
        assert_eq!(pushback(&of_outage(&Outage::Overloaded("full".to_owned()))), None);
    }
}
