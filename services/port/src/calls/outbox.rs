//! Answers that have not been sent, and grants.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::{BufMut as _, Bytes, BytesMut};
use parking_lot::Mutex;
use prost::Message as _;
use tonic::Status;
use tripod_proto::tripod::v1 as wire;

use super::bounds::{ANSWER_BYTES_A_FRAME, ANSWERS_A_FRAME_MAX, OPS_GRANTED};
use crate::bytes_held::CallBytes;

/// gRPC's head of a message.
const HEAD_BYTES: usize = 5;

/// Between the task of a stream and the body of its response.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Queued>,
    /// Ops that the client may send beside those that answers grant, and was not told of.
    grant: u32,
    /// Ops that the client was told it may send, and has not sent.
    granted: u32,
    /// A bye is to be said.
    says_bye: bool,
    end: Option<Status>,
    /// Of the body's task, when it rests.
    waiting: Option<Waker>,
}

/// An answer that has not been taken.
#[derive(Debug)]
struct Queued {
    answer: wire::Answer,
    /// How many more ops it grants.
    grant: u32,
    bytes: Option<CallBytes>,
}

/// What the body of the response gives next.
#[derive(Debug)]
pub(super) enum Next {
    /// A frame, with gRPC's head.
    Frame(Bytes),
    End(Status),
}

impl Outbox {
    /// That of a stream whose first ops are granted by its first frame.
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                grant: OPS_GRANTED,
                granted: 0,
                says_bye: false,
                end: None,
                waiting: None,
            }),
        }
    }

    /// The client sends so many ops.
    ///
    /// # Errors
    /// How many more than were granted.
    pub(super) fn spend(&self, ops: u32) -> Result<(), u32> {
        let mut state = self.state.lock();
        state.granted = state.granted.checked_sub(ops).ok_or_else(|| ops - state.granted)?;
        Ok(())
    }

    /// Puts an answer there, which grants so many more ops when it is taken. Until then `bytes` are held.
    pub(super) fn put(&self, answer: wire::Answer, grant: u32, bytes: Option<CallBytes>) {
        self.state.lock().queue.push_back(Queued { answer, grant, bytes });
    }

    /// Grants more ops.
    pub(super) fn grant(&self, ops: u32) {
        self.state.lock().grant += ops;
    }

    pub(super) fn say_bye(&self) {
        self.state.lock().says_bye = true;
    }

    /// Nothing comes behind what is there. The first word counts.
    pub(super) fn end(&self, status: Status) {
        self.state.lock().end.get_or_insert(status);
    }

    /// Wakes who sends, if there is something to be sent. To be called when all is there that comes now.
    pub(super) fn tell(&self) {
        let mut state = self.state.lock();
        let waiting = if state.is_empty() { None } else { state.waiting.take() };
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// What is to be sent next.
    pub(super) fn poll_next(&self, context: &Context<'_>) -> Poll<Next> {
        let mut state = self.state.lock();
        if !state.has_frame() {
            if let Some(status) = &state.end {
                return Poll::Ready(Next::End(status.clone()));
            }
            match &mut state.waiting {
                Some(known) => known.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        let (frame, taken) = state.next_frame();
        drop(state);
        let framed = framed(&frame);
        // What it holds is given back outside of the lock.
        drop(taken);
        Poll::Ready(Next::Frame(framed))
    }
}

impl State {
    fn has_frame(&self) -> bool {
        !self.queue.is_empty() || self.grant > 0 || self.says_bye
    }

    fn is_empty(&self) -> bool {
        !self.has_frame() && self.end.is_none()
    }

    /// As many answers as a frame takes.
    fn next_frame(&mut self) -> (wire::Frame, Vec<Option<CallBytes>>) {
        let most = self.queue.len().min(ANSWERS_A_FRAME_MAX);
        let (mut answers, mut taken) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut grant = std::mem::take(&mut self.grant);
        let mut bytes = 0;
        while answers.len() < ANSWERS_A_FRAME_MAX
            && let Some(queued) = self.queue.front()
        {
            bytes += weight(&queued.answer);
            if bytes > ANSWER_BYTES_A_FRAME && !answers.is_empty() {
                break;
            }
            let Some(queued) = self.queue.pop_front() else { break };
            grant += queued.grant;
            answers.push(queued.answer);
            taken.push(queued.bytes);
        }
        self.granted += grant;
        let bye = std::mem::take(&mut self.says_bye).then_some(wire::Bye {});
        (wire::Frame { answers, grant, bye, ..Default::default() }, taken)
    }
}

/// About how many bytes an answer becomes.
fn weight(answer: &wire::Answer) -> usize {
    let metadata: usize = answer.metadata.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
    answer.message.len() + answer.details.len() + answer.text.len() + metadata
}

fn framed(frame: &wire::Frame) -> Bytes {
    let length = frame.encoded_len();
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES + length);
    bytes.put_u8(0);
    // One answer is a message whose length was four bytes, and what is beside it is bounded.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame.encode_raw(&mut bytes);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::FutureExt as _;

    use super::*;

    fn next(outbox: &Outbox) -> Option<Next> {
        poll_fn(|context| outbox.poll_next(context)).now_or_never()
    }

    fn frame(outbox: &Outbox) -> wire::Frame {
        match next(outbox) {
            Some(Next::Frame(bytes)) => wire::Frame::decode(&bytes[HEAD_BYTES..]).expect("a frame"),
            other => panic!("{other:?}"),
        }
    }

    fn answer(tag: u32, bytes: usize) -> wire::Answer {
        wire::Answer { tag, message: vec![7; bytes].into(), ..Default::default() }
    }

    fn opened() -> Outbox {
        let outbox = Outbox::new();
        assert_eq!(frame(&outbox).grant, OPS_GRANTED);
        outbox
    }

    #[test]
    fn nobody_may_send_an_op_before_it_was_granted() {
        let outbox = Outbox::new();
        assert_eq!(outbox.spend(1), Err(1), "nothing has been said");
        assert_eq!(frame(&outbox).grant, OPS_GRANTED);
        assert_eq!(outbox.spend(OPS_GRANTED), Ok(()));
        outbox.put(answer(1, 0), 1, None);
        assert_eq!(outbox.spend(1), Err(1), "the answer was not taken");
        assert_eq!(frame(&outbox).grant, 1);
        assert_eq!((outbox.spend(2), outbox.spend(1), outbox.spend(1)), (Err(1), Ok(()), Err(1)));
    }

    #[test]
    fn what_is_there_goes_in_one_frame_up_to_its_bounds() {
        let outbox = opened();
        for tag in 1..=300 {
            outbox.put(answer(tag, 1), 1, None);
        }
        outbox.grant(5);
        let first = frame(&outbox);
        assert_eq!((first.answers.len(), first.grant), (ANSWERS_A_FRAME_MAX, 256 + 5));
        let second = frame(&outbox);
        let tags: Vec<u32> = second.answers.iter().map(|answer| answer.tag).collect();
        assert_eq!((tags, second.grant), ((257..=300).collect(), 44));
        for bytes in [ANSWER_BYTES_A_FRAME / 2, ANSWER_BYTES_A_FRAME / 2, 2 * ANSWER_BYTES_A_FRAME, 1] {
            outbox.put(answer(1, bytes), 1, None);
        }
        assert_eq!([(); 3].map(|()| frame(&outbox).answers.len()), [2, 1, 1]);
        assert!(next(&outbox).is_none());
    }

    #[test]
    fn the_end_comes_behind_all_that_is_there_and_only_its_first_word_counts() {
        let outbox = opened();
        outbox.put(answer(1, 1), 1, None);
        outbox.say_bye();
        outbox.end(Status::ok(""));
        outbox.end(Status::internal("too late"));
        let last = frame(&outbox);
        assert!(last.bye.is_some() && last.answers.len() == 1);
        assert!(matches!(next(&outbox), Some(Next::End(status)) if status.code() == tonic::Code::Ok));
    }
}
