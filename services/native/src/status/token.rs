//! Reason words of what was refused about tokens.

use tonic::{Code, Status};
use tripod_state::identity::Mode as Protection;
use tripod_state::token::Refusal;
use tripod_token::Beyond;

use super::with_reason;

/// The reason words of the state's refusals.
pub(crate) fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Unknown { .. } => "token-unknown",
        Refusal::Taken { .. } => "token-taken",
        Refusal::Invalid { .. } => "token-invalid",
        Refusal::Ended { .. } => "token-ended",
        Refusal::Bootstrapped { .. } => "token-bootstrapped",
    }
}

/// A token that may do more than who makes it.
pub(crate) fn beyond(beyond: Beyond) -> Status {
    with_reason(Code::PermissionDenied, "token-beyond", format!("T1532 token-refused: {beyond}"))
}

/// A secret that others on the way could read.
pub(crate) fn in_plain_text() -> Status {
    let text = "T1534 token-plain: a token is told over TLS, or to a client on the node's own host; connect with --tls-dir, or \
                run `tripod auth token create` there";
    with_reason(Code::FailedPrecondition, "token-plain", text.to_owned())
}

/// A kind that there is not.
pub(crate) fn no_kind() -> Status {
    let kinds = tripod_state::token::Kind::ALL.map(tripod_state::token::Kind::word).join(", ");
    with_reason(Code::InvalidArgument, "token-invalid", format!("a token's kind is one of {kinds}"))
}

/// A mode that there is not.
pub(crate) fn no_mode(why: &'static str) -> Status {
    with_reason(Code::InvalidArgument, "floor-invalid", format!("the mode of a floor {why}"))
}

/// This node would be below the floor that is asked for.
pub(crate) fn below_floor(own: Protection, floor: Protection) -> Status {
    let text = format!(
        "T1523 below-floor: this node is protected as `{own}`, which is below `{floor}`; see with `tripod status` how all nodes \
         are, and raise the floor when none is below it"
    );
    with_reason(Code::FailedPrecondition, "below-floor", text)
}
