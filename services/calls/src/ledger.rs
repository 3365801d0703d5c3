//! What was called, sent and granted: every rule of a stream, without input or output.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::oneshot;
use tripod_proto::metadata::STAMP;
use tripod_proto::tripod::v1 as wire;

use crate::answer::Answer;
use crate::bounds::{
    CALLS_MAX, FRAME_BYTES_MAX, FRAME_OPS_MAX, FRAMES_WAITING_MAX, GIVEN_UP_MAX, OP_MESSAGE_BYTES_MAX,
    OP_OVERHEAD_BYTES, PATH_BYTES_MAX, PATHS_MAX, QUEUED_BYTES_MAX,
};
use crate::frames_waiting::{FrameNumber, FramesWaiting};
use crate::lost::{Lost, Reason};
use crate::metadata;
use crate::options::CallOptions;

/// How a call ends.
pub(crate) type Outcome = Result<Answer, Lost>;
/// Where whoever waits for a call hears of it.
pub(crate) type Waiter = oneshot::Sender<Outcome>;
/// Calls that have ended, to be told so when nothing is locked any more.
pub(crate) type Ended = Vec<(Waiter, Outcome)>;

/// A client's name for an op until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag(u32);

/// What a stream has to send.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Frame(wire::Frame),
    Nothing,
    /// Nothing ever again.
    Over,
}

/// The state of a stream.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Until it is sent.
    hello: Option<wire::Hello>,
    has_session: bool,
    paths: HashMap<String, u32>,
    paths_unsent: Vec<String>,
    /// The tag to try first for the next op. Tags are used again only after all others have been: an answer to a call that
    /// was given up may be on the way, and must not be taken for that to another one.
    next_tag: u32,
    pending: HashMap<Tag, Pending>,
    /// How many of those somebody waits for.
    calls: usize,
    /// In the order in which they were called.
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    next_place: u64,
    /// Sent, and given up: the oldest first, some of which may have been answered since.
    given_up: VecDeque<Tag>,
    /// Of those, the ones of which the node has not been told.
    untold: VecDeque<Tag>,
    /// Ops that may be sent now.
    granted: u32,
    /// Whether the node has ever granted anything.
    has_granted: bool,
    frames: FramesWaiting,
    is_leaving: bool,
    /// The node has said that it takes no more calls.
    has_goodbye: bool,
    is_closed: bool,
    end: Option<Reason>,
    /// Of the task that sends, while it has nothing to send.
    sender: Option<Waker>,
}

/// An op that is not answered.
#[derive(Debug)]
struct Pending {
    /// `None`: it was given up.
    waiter: Option<Waiter>,
    at: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Queued(u64),
    Sent(FrameNumber),
    /// Sent, and its frame does not wait for it any more.
    Arrived,
}

#[derive(Debug)]
struct Queued {
    place: u64,
    bytes: usize,
    op: wire::Op,
}

impl Ledger {
    pub(crate) fn new(hello: wire::Hello) -> Self {
        Self {
            has_session: !hello.session.is_empty(),
            hello: Some(hello),
            paths: HashMap::new(),
            paths_unsent: Vec::new(),
            next_tag: 1,
            pending: HashMap::new(),
            calls: 0,
            queue: VecDeque::new(),
            queued_bytes: 0,
            next_place: 0,
            given_up: VecDeque::new(),
            untold: VecDeque::new(),
            granted: 0,
            has_granted: false,
            frames: FramesWaiting::default(),
            is_leaving: false,
            has_goodbye: false,
            is_closed: false,
            end: None,
            sender: None,
        }
    }

    pub(crate) fn end(&self) -> Option<&Reason> {
        self.end.as_ref()
    }

    pub(crate) fn has_granted(&self) -> bool {
        self.has_granted
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    pub(crate) fn has_goodbye(&self) -> bool {
        self.has_goodbye
    }

    /// Whether nobody holds the stream, nor waits for a call.
    pub(crate) fn is_unused(&self) -> bool {
        self.is_closed && self.calls == 0
    }

    /// Puts a call behind those that wait to be sent.
    ///
    /// # Errors
    /// [`Lost::NotSent`].
    pub(crate) fn enter(
        &mut self,
        path: &str,
        message: Bytes,
        options: &CallOptions,
        waiter: Waiter,
    ) -> Result<Tag, Lost> {
        let refused = |reason| Err(Lost::NotSent(reason));
        if let Some(reason) = &self.end {
            return refused(reason.clone());
        }
        if self.is_leaving {
            return refused(Reason::Leaving);
        }
        if message.len() > OP_MESSAGE_BYTES_MAX {
            return refused(Reason::TooLong);
        }
        if options.sequence > 0 && (!self.has_session || options.metadata.contains_key(STAMP)) {
            return refused(Reason::Sequence);
        }
        let (metadata, metadata_bytes) = metadata::sent(&options.metadata).map_err(Lost::NotSent)?;
        let bytes = message.len() + metadata_bytes + OP_OVERHEAD_BYTES;
        if self.calls >= CALLS_MAX || self.queued_bytes + bytes > QUEUED_BYTES_MAX {
            return refused(Reason::Full);
        }
        let path = self.path(path)?;
        let tag = self.tag();
        let op = wire::Op {
            tag: tag.0,
            path,
            message,
            sequence: options.sequence,
            acknowledged_below: options.acknowledged_below,
            patience_ms: options.patience_ms(),
            metadata,
        };
        let place = self.next_place;
        self.next_place += 1;
        self.queue.push_back(Queued { place, bytes, op });
        self.queued_bytes += bytes;
        self.pending.insert(tag, Pending { waiter: Some(waiter), at: Place::Queued(place) });
        self.calls += 1;
        Ok(tag)
    }

    fn path(&mut self, path: &str) -> Result<u32, Lost> {
        if let Some(number) = self.paths.get(path) {
            return Ok(*number);
        }
        if !path.starts_with('/') || PathAndQuery::try_from(path).is_err() {
            return Err(Lost::NotSent(Reason::NoPath));
        }
        if self.paths.len() >= PATHS_MAX || path.len() > PATH_BYTES_MAX {
            return Err(Lost::NotSent(Reason::Paths));
        }
        let number = u32::try_from(self.paths.len() + 1).expect("there are few paths");
        self.paths.insert(path.to_owned(), number);
        self.paths_unsent.push(path.to_owned());
        Ok(number)
    }

    fn tag(&mut self) -> Tag {
        loop {
            let tag = Tag(self.next_tag);
            self.next_tag = self.next_tag.checked_add(1).unwrap_or(1);
            if !self.pending.contains_key(&tag) {
                return tag;
            }
        }
    }

    /// Nobody waits for this call any more.
    pub(crate) fn give_up(&mut self, tag: Tag) {
        let Some(pending) = self.pending.get_mut(&tag) else { return };
        if pending.waiter.take().is_none() {
            return;
        }
        self.calls -= 1;
        let at = std::mem::replace(&mut pending.at, Place::Arrived);
        match at {
            Place::Queued(place) => {
                self.pending.remove(&tag);
                self.unqueue(place);
                return;
            }
            Place::Sent(frame) => self.frames.done(frame),
            Place::Arrived => {}
        }
        self.untold.push_back(tag);
        self.given_up.push_back(tag);
        if self.given_up.len() > GIVEN_UP_MAX
            && let Some(oldest) = self.given_up.pop_front()
            && self.pending.get(&oldest).is_some_and(|pending| pending.waiter.is_none())
        {
            self.pending.remove(&oldest);
        }
    }

    fn unqueue(&mut self, place: u64) {
        let Ok(at) = self.queue.binary_search_by_key(&place, |queued| queued.place) else { return };
        if let Some(queued) = self.queue.remove(at) {
            self.queued_bytes -= queued.bytes;
        }
    }

    /// Whether calls could go now if there are some.
    fn may_send(&self) -> bool {
        self.granted > 0 && self.frames.count() < FRAMES_WAITING_MAX
    }

    fn has_frame(&self) -> bool {
        self.hello.is_some() || !self.untold.is_empty() || (!self.queue.is_empty() && self.may_send())
    }

    /// Whether others are under way, whose callers may be about to call again.
    pub(crate) fn is_busy(&self) -> bool {
        self.frames.count() > 0
    }

    pub(crate) fn next(&mut self) -> Next {
        if self.end.is_some() || self.is_unused() {
            return Next::Over;
        }
        if !self.has_frame() {
            return Next::Nothing;
        }
        let mut ops: Vec<wire::Op> = Vec::new();
        while ops.len() < FRAME_OPS_MAX
            && let Some(Tag(tag)) = self.untold.pop_front()
        {
            ops.push(wire::Op { tag, ..wire::Op::default() });
        }
        let called = if self.may_send() { self.take_queued(&mut ops) } else { 0 };
        if called > 0 {
            self.frames.sent(called);
        }
        let paths = std::mem::take(&mut self.paths_unsent);
        Next::Frame(wire::Frame { hello: self.hello.take(), paths, ops, ..wire::Frame::default() })
    }

    /// Adds as many to a frame as it may have; tells how many.
    fn take_queued(&mut self, ops: &mut Vec<wire::Op>) -> usize {
        let frame = self.frames.next();
        let (mut called, mut frame_bytes) = (0, 0);
        while self.granted > 0
            && ops.len() < FRAME_OPS_MAX
            && let Some(first) = self.queue.front()
            && (called == 0 || frame_bytes + first.bytes <= FRAME_BYTES_MAX)
            && let Some(Queued { bytes, op, .. }) = self.queue.pop_front()
        {
            self.queued_bytes -= bytes;
            frame_bytes += bytes;
            self.granted -= 1;
            called += 1;
            if let Some(pending) = self.pending.get_mut(&Tag(op.tag)) {
                pending.at = Place::Sent(frame);
            }
            ops.push(op);
        }
        called
    }

    /// Takes a frame of the node; adds the calls that have ended by it to `ended`.
    ///
    /// # Errors
    /// No node sends this: the stream is to be ended.
    pub(crate) fn receive(&mut self, frame: wire::Frame, ended: &mut Ended) -> Result<(), Reason> {
        let wire::Frame { hello, paths, ops, answers, grant, bye } = frame;
        if hello.is_some() || !paths.is_empty() || !ops.is_empty() {
            return Err(Reason::Breach("sent what only clients send"));
        }
        self.granted = self.granted.saturating_add(grant);
        self.has_granted |= grant > 0;
        for answer in answers {
            self.answered(answer, ended)?;
        }
        if bye.is_some() {
            self.has_goodbye = true;
            self.leave(ended);
        }
        Ok(())
    }

    fn answered(&mut self, answer: wire::Answer, ended: &mut Ended) -> Result<(), Reason> {
        const UNKNOWN: Reason = Reason::Breach("answered what it was not asked");
        let tag = Tag(answer.tag);
        let pending = self.pending.get_mut(&tag).ok_or(UNKNOWN)?;
        match pending.at {
            Place::Queued(_) => return Err(UNKNOWN),
            Place::Sent(frame) => self.frames.heard(frame),
            Place::Arrived => {}
        }
        pending.at = Place::Arrived;
        if answer.arrived {
            return Ok(());
        }
        let answer = Answer::of(answer).ok_or(Reason::Breach("answered with metadata that are none"))?;
        if let Some(waiter) = self.pending.remove(&tag).and_then(|pending| pending.waiter) {
            self.calls -= 1;
            ended.push((waiter, Ok(answer)));
        }
        Ok(())
    }

    /// No calls are sent any more. What was sent is waited for.
    pub(crate) fn leave(&mut self, ended: &mut Ended) {
        self.is_leaving = true;
        let unsent = std::mem::take(&mut self.queue);
        self.queued_bytes = 0;
        for Queued { op, .. } in unsent {
            if let Some(waiter) = self.pending.remove(&Tag(op.tag)).and_then(|pending| pending.waiter) {
                self.calls -= 1;
                ended.push((waiter, Err(Lost::NotSent(Reason::Leaving))));
            }
        }
    }

    /// Nobody holds the stream any more.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// The stream has ended; the first reason counts.
    pub(crate) fn over(&mut self, reason: Reason, ended: &mut Ended) {
        let reason = self.end.get_or_insert(reason).clone();
        self.queue.clear();
        self.queued_bytes = 0;
        self.untold.clear();
        self.given_up.clear();
        self.calls = 0;
        // In the order of their tags, as a run must be repeatable.
        let mut pending: Vec<(Tag, Pending)> = self.pending.drain().collect();
        pending.sort_unstable_by_key(|(tag, _)| *tag);
        for (_, Pending { waiter, at }) in pending {
            let Some(waiter) = waiter else { continue };
            let lost = match at {
                Place::Sent(_) | Place::Arrived => Lost::Unknown(reason.clone()),
                Place::Queued(_) => Lost::NotSent(reason.clone()),
            };
            ended.push((waiter, Err(lost)));
        }
    }

    /// Remembers who sends, as there is nothing to send. Gives back who was remembered before: to drop it is not for whoever
    /// holds a lock.
    #[must_use]
    pub(crate) fn rest(&mut self, sender: &Waker) -> Option<Waker> {
        self.sender.replace(sender.clone())
    }

    /// Who is to be woken, as there is something to send now, or never will be again.
    pub(crate) fn roused(&mut self) -> Option<Waker> {
        let is_due = self.has_frame() || self.end.is_some() || self.is_unused();
        if is_due { self.sender.take() } else { None }
    }
}

#[cfg(test)]
#[path = "ledger_test.rs"]
mod tests;
