//! Why a stream ends that breaks the rules: what was wrong, and what to do.

use std::fmt;

use tonic::Status;
use tripod_proto::code::Code;

use super::bounds::{FRAME_BYTES_MAX, HELLO_TIME, OPS_GRANTED, STREAMS_MAX};
use crate::refusal;

/// The client said something that no client may say.
pub(super) fn misused(what: impl fmt::Display) -> Status {
    Status::invalid_argument(format!("{}: {what}", Code::CallsMisused))
}

/// More ops came than were granted.
pub(super) fn beyond_grant(more: u32) -> Status {
    let code = Code::CallsMisused;
    Status::resource_exhausted(format!(
        "{code}: {more} ops more came than were granted; send no more than {OPS_GRANTED} and what the node's frames grant"
    ))
}

/// The connection has as many streams as it may.
pub(super) fn streams() -> Status {
    let code = Code::CallsMisused;
    Status::resource_exhausted(format!(
        "{code}: this connection has {STREAMS_MAX} streams of calls, all that it may; send ops by those"
    ))
}

/// The first frame did not come.
pub(super) fn silent() -> Status {
    let (code, seconds) = (Code::CallsMisused, HELLO_TIME.as_secs());
    Status::deadline_exceeded(format!(
        "{code}: no frame with a hello came within {seconds} s; send one when the stream is opened"
    ))
}

/// Why no more frames can be read.
pub(super) fn unread(status: Status) -> Status {
    match status.code() {
        tonic::Code::OutOfRange => misused(format_args!(
            "a frame has more than {} MiB; send larger messages as calls of their own",
            FRAME_BYTES_MAX >> 20
        )),
        _ => status,
    }
}

/// An op's method has streams.
pub(super) fn streaming(path: &str) -> Status {
    Status::unimplemented(format!(
        "{}: {path} has more than one message or answer; make a call of its own",
        Code::CallsMisused
    ))
}

/// The stream's task has failed.
pub(super) fn failed() -> Status {
    refusal::with_outage(
        Status::unavailable("the stream of calls has failed; send unanswered ops again by another one"),
        tripod_proto::metadata::OUTAGE_UNKNOWN,
    )
}
