//! What it takes to remember a reply.

use std::hash::Hasher;

use crate::canonical;
use crate::command::Reply;

/// What the memory of one reply takes besides what is in it, roughly.
const REPLY_BYTES: u64 = 128;

/// Bytes of a remembered reply, roughly. The same on every node: limits are decided by it.
pub(super) fn of(reply: &Reply) -> u64 {
    let mut counter = Counter(REPLY_BYTES);
    canonical::feed(reply, &mut counter);
    counter.0
}

/// Counts what it is given.
struct Counter(u64);

impl Hasher for Counter {
    fn write(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
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
