//! What gRPC calls the classes of refusals: for the front ends that speak it, where their protocol has no code of its own
//! for a fault.

use tonic::Code;
use tripod_state::Class;

/// The code of a refusal of that class.
#[must_use]
pub fn by_class(class: Class) -> Code {
    match class {
        Class::InvalidArgument => Code::InvalidArgument,
        Class::OutOfRange => Code::OutOfRange,
        Class::NotFound => Code::NotFound,
        Class::AlreadyExists => Code::AlreadyExists,
        Class::FailedPrecondition => Code::FailedPrecondition,
        Class::Aborted => Code::Aborted,
        Class::Exhausted => Code::ResourceExhausted,
        Class::Unavailable => Code::Unavailable,
        Class::Deadline => Code::DeadlineExceeded,
        Class::Cancelled => Code::Cancelled,
        Class::Internal => Code::Internal,
        Class::Denied => Code::PermissionDenied,
    }
}
