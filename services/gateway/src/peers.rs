//! Questions of a front end on any node to the same front end on the leader's: what a leader keeps in memory and
//! not in the log, as it was told by whichever node a client happened to call. Each front end has a channel of its own.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut as _, Bytes, BytesMut};

/// Whose question it is: the first byte of it. A message of protobuf begins with the number of a field, shifted by three
/// bits, and there is no field 0: so a batch of heartbeats, which has no channel, begins with none of these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel(u8);

/// So many channels there can be.
const CHANNELS: usize = 8;

impl Channel {
    /// The scheduler of the Ray of 2016. Every build with feature level 3 knows it; a new channel needs a new level, as a
    /// leader of an earlier build takes its questions for a broken batch of heartbeats.
    pub const RAY: Self = Self(0);
    /// The clusters of MindSpore, of which there is nothing before feature level 9: whoever leads at that level knows it.
    pub const MINDSPORE: Self = Self(1);
    /// How long ago the leader heard the tasks of a job: asked from feature level 11 on only.
    pub const AGES: Self = Self(2);
    /// What a node knows by itself of a job, and of the cluster: asked of every member, whoever leads, by
    /// [`ask_node`](crate::Replica::ask_node), which earlier builds do not have.
    pub(crate) const SIGHT: Self = Self(3);
    /// What a node has seen itself: asked of any member, as [`Self::SIGHT`].
    pub(crate) const NODE_EVENTS: Self = Self(4);
    /// What time it is at the leader: asked from feature level 11 on only.
    pub const CLOCK: Self = Self(6);
    /// Of tests and examples.
    pub const EXAMPLE: Self = Self(7);
}

/// Answers a question on the leader; an error text says that there is no answer for now.
pub type PeersHandler = Arc<dyn Fn(Bytes) -> Result<Bytes, String> + Send + Sync>;

/// Who answers such questions on this node.
#[derive(Default)]
pub(crate) struct Peers {
    handlers: [OnceLock<PeersHandler>; CHANNELS],
}

impl Peers {
    /// Only the first handler of a channel counts.
    pub(crate) fn handle(&self, channel: Channel, handler: PeersHandler) {
        // A second front end of the same kind would share the first one's memory or have none at all.
        let first = self.handlers[usize::from(channel.0)].set(handler).is_ok();
        debug_assert!(first, "one front end answers on {channel:?}");
    }

    /// The answer to what is asked of a node whoever leads: the other channels are the leader's.
    pub(crate) fn answer_here(&self, question: &Bytes) -> Result<Bytes, String> {
        let about_a_node = [Channel::SIGHT, Channel::NODE_EVENTS];
        let is_about_a_node = about_a_node.iter().any(|channel| question.first() == Some(&channel.0));
        let answer = is_about_a_node.then(|| self.answer(question)).flatten();
        answer.unwrap_or_else(|| Err("this is no question about a node".into()))
    }

    /// The answer, if this is a question of a front end.
    pub(crate) fn answer(&self, question: &Bytes) -> Option<Result<Bytes, String>> {
        let handler = self.handlers.get(usize::from(*question.first()?))?;
        Some(match handler.get() {
            Some(handler) => handler(question.slice(1..)),
            None => Err("the node is starting, or has no such front end".into()),
        })
    }
}

/// A question as it is sent.
pub(crate) fn on(channel: Channel, question: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + question.len());
    bytes.put_u8(channel.0);
    bytes.extend_from_slice(question);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_reaches_the_handler_of_its_channel_and_beats_reach_none() {
        let peers = Peers::default();
        let asked = |channel| peers.answer(&on(channel, &Bytes::from_static(b"abc")));
        assert!(matches!(asked(Channel::RAY), Some(Err(_))), "nobody answers yet");
        peers.handle(Channel::RAY, Arc::new(|question| Ok(question.slice(..2))));
        peers.handle(Channel::EXAMPLE, Arc::new(|question| Ok(question.slice(2..))));
        assert_eq!(asked(Channel::RAY), Some(Ok(Bytes::from_static(b"ab"))));
        assert_eq!(asked(Channel::EXAMPLE), Some(Ok(Bytes::from_static(b"c"))));
        assert_eq!(peers.answer(&Bytes::from_static(&[10, 0])), None);
        assert_eq!(peers.answer(&Bytes::new()), None, "an empty batch of heartbeats");
    }

    /// What builds with feature level 3 send and understand.
    #[test]
    fn a_question_of_the_scheduler_begins_with_a_zero() {
        assert_eq!(&on(Channel::RAY, &Bytes::from_static(b"a"))[..], [0, b'a']);
    }
}
