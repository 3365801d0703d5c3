//! Questions of a front end on any node to the same front end on the leader's: what a leader keeps in memory and
//! not in the log, as it was told by whichever node a client happened to call.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut as _, Bytes, BytesMut};

/// What a question of a front end begins with. No message of protobuf begins with this byte, so a batch of
/// heartbeats is never taken for one.
const MARK: u8 = 0;

/// Answers a question on the leader; an error text says that there is no answer for now.
pub type PeersHandler = Arc<dyn Fn(Bytes) -> Result<Bytes, String> + Send + Sync>;

/// Who answers such questions on this node.
#[derive(Default)]
pub(crate) struct Peers {
    handler: OnceLock<PeersHandler>,
}

impl Peers {
    /// Only the first handler counts.
    pub(crate) fn handle(&self, handler: PeersHandler) {
        // A second front end of the same node would share the first one's memory or have none at all.
        let first = self.handler.set(handler).is_ok();
        debug_assert!(first, "one front end answers");
    }

    /// The answer, if this is a question of a front end.
    pub(crate) fn answer(&self, question: &Bytes) -> Option<Result<Bytes, String>> {
        let content = (question.first() == Some(&MARK)).then(|| question.slice(1..))?;
        Some(match self.handler.get() {
            Some(handler) => handler(content),
            None => Err("the node is starting".into()),
        })
    }
}

/// A question as it is sent.
pub(crate) fn marked(question: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + question.len());
    bytes.put_u8(MARK);
    bytes.extend_from_slice(question);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_question_reaches_the_handler_and_others_do_not() {
        let peers = Peers::default();
        let asked = marked(&Bytes::from_static(b"abc"));
        assert_eq!(peers.answer(&asked), Some(Err("the node is starting".into())));
        peers.handle(Arc::new(|question| Ok(question.slice(..2))));
        assert_eq!(peers.answer(&asked), Some(Ok(Bytes::from_static(b"ab"))));
        assert_eq!(peers.answer(&Bytes::from_static(&[10, 0])), None);
        assert_eq!(peers.answer(&Bytes::new()), None, "an empty batch of heartbeats");
    }
}
