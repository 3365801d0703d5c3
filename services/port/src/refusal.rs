//! What a call is told that this node cannot serve for a reason of its own.

use tonic::Status;
use tonic::metadata::MetadataValue;
use tripod_proto::metadata;

use crate::bytes_held::Short;
use crate::under_way::Cut;

/// Tells the retry policy of a client's gRPC, if it has one, when to repeat an UNAVAILABLE call.
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Not at all: the error is genuine, and every repetition would find it again, only later.
const PUSHBACK_NEVER: &str = "-1";
/// About as long as an election takes. gRPC makes only five attempts of a call, so none may be wasted.
const PUSHBACK_SOON_MS: &str = "1000";

/// Says that a status is not the domain's word, by one of the `OUTAGE_*` words.
#[must_use]
pub fn with_outage(mut status: Status, word: &'static str) -> Status {
    status.metadata_mut().insert(metadata::OUTAGE, MetadataValue::from_static(word));
    status
}

/// Has gRPC repeat the call after a while, if its code is the one that retry policies are told to repeat.
#[must_use]
pub fn again_soon(status: Status) -> Status {
    with_pushback(status, PUSHBACK_SOON_MS)
}

/// Has gRPC not repeat the call, whatever its retry policy says.
#[must_use]
pub fn never_again(status: Status) -> Status {
    with_pushback(status, PUSHBACK_NEVER)
}

fn with_pushback(mut status: Status, pushback: &'static str) -> Status {
    if status.code() == tonic::Code::Unavailable {
        status.metadata_mut().insert(PUSHBACK, MetadataValue::from_static(pushback));
    }
    status
}

/// There is no room for a call or its answer.
#[must_use]
pub fn of_short(short: Short) -> Status {
    again_soon(with_outage(Status::resource_exhausted(overloaded(short)), metadata::OUTAGE_OVERLOADED))
}

/// The same in words.
pub(crate) fn overloaded(short: Short) -> String {
    format!("overloaded: {short}")
}

/// A call ends before its answer, because its port stops.
#[must_use]
pub fn of_cut(cut: Cut) -> Status {
    let (text, word) = match cut {
        Cut::Elsewhere => ("node is stopping", metadata::OUTAGE_STOPPING),
        Cut::Unknown => ("outcome unknown: the node is stopping", metadata::OUTAGE_UNKNOWN),
        // Whoever makes the call again hears so.
        Cut::RefusedSince => ("outcome unknown: its caller is believed no longer", metadata::OUTAGE_UNKNOWN),
        Cut::Refused(text) => return Status::unauthenticated(text),
    };
    again_soon(with_outage(Status::unavailable(text), word))
}

/// There is no room for a poll, which is told so by a text that begins with `poll_over`, and with the one code that does no
/// harm.
pub(crate) fn of_short_poll(short: Short, poll_over: &str) -> Status {
    Status::cancelled(format!("{poll_over}{}", overloaded(short)))
}
