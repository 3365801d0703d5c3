//! What it takes to remember a reply.

use crate::canonical;
use crate::command::Reply;

/// What the memory of one reply takes besides what is in it, roughly.
const REPLY_BYTES: u64 = 128;

/// Bytes of a remembered reply, roughly. The same on every node: limits are decided by it.
pub(super) fn of(reply: &Reply) -> u64 {
    REPLY_BYTES + canonical::bytes_of(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Answer;
    use crate::fault::Fault;

    #[test]
    fn a_reply_weighs_what_its_texts_do() {
        let missing = |length| of(&Err(Fault::KeyMissing { asked: "k".repeat(length) }));
        assert_eq!(missing(100_000) - missing(0), 100_000);
        assert!(of(&Ok(Answer::Done)) < REPLY_BYTES + 64);
    }
}
