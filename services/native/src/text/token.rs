//! Why something about tokens was refused, in words, with the next command.

use tripod_state::token::Refusal;

/// The state's refusal as one sentence without a full stop.
pub(crate) fn of_refusal(refusal: &Refusal) -> String {
    let text = refusal.text();
    match refusal {
        Refusal::Unknown { .. } => {
            format!("T1533 token-unknown: {text}; see them with `tripod auth token list`")
        }
        Refusal::Taken { .. } => text,
        Refusal::Invalid { .. } => format!("{text}; see `tripod auth token create --help`"),
        Refusal::Ended { .. } => {
            format!("T1532 token-refused: {text}; make another one with `tripod auth token create`")
        }
        Refusal::Bootstrapped { .. } => format!(
            "T1535 token-bootstrap: {text}; use that one, or revoke it with `tripod auth token revoke`"
        ),
    }
}
