//! What streams of calls do, counted for all ports of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts streams of calls, their ops and their frames. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct StreamTally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    open: AtomicU64,
    ops: AtomicU64,
    waiting: AtomicU64,
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    ended: [AtomicU64; StreamEnd::ALL.len()],
}

/// Why a stream has ended, or was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The client ended it, or is gone.
    Client,
    /// The port stops.
    Bye,
    /// The client broke a rule.
    Breach,
    /// The client had more of something than it may have: ops, streams, bytes.
    Limit,
    /// The node's own task has failed.
    Failed,
}

/// A stream that is open, for as long as this lives.
#[derive(Debug)]
pub(super) struct OpenStream {
    tally: StreamTally,
    /// What is counted when it ends.
    end: StreamEnd,
}

impl StreamEnd {
    /// Each of them.
    pub const ALL: [Self; 5] = [Self::Client, Self::Bye, Self::Breach, Self::Limit, Self::Failed];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Bye => "bye",
            Self::Breach => "breach",
            Self::Limit => "limit",
            Self::Failed => "failed",
        }
    }
}

impl StreamTally {
    /// Streams that are open.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Ops that were taken, those that were refused at once among them.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.0.ops.load(Ordering::Relaxed)
    }

    /// Ops that have begun, and of which there is no answer yet.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Frames that came from clients.
    #[must_use]
    pub fn frames_in(&self) -> u64 {
        self.0.frames_in.load(Ordering::Relaxed)
    }

    /// Frames that the transport has taken for clients.
    #[must_use]
    pub fn frames_out(&self) -> u64 {
        self.0.frames_out.load(Ordering::Relaxed)
    }

    /// Streams that have ended for each reason, or were not opened.
    pub fn ended(&self) -> impl Iterator<Item = (StreamEnd, u64)> + '_ {
        StreamEnd::ALL.into_iter().zip(self.0.ended.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// A stream is opened.
    pub(super) fn enter(&self) -> OpenStream {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        OpenStream { tally: self.clone(), end: StreamEnd::Client }
    }

    /// A stream has ended, or was not opened.
    pub(super) fn note_end(&self, end: StreamEnd) {
        let place = StreamEnd::ALL.into_iter().position(|other| other == end);
        if let Some(count) = place.and_then(|place| self.0.ended.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A frame came that begins so many ops.
    pub(super) fn note_frame_in(&self, ops: u32) {
        self.0.frames_in.fetch_add(1, Ordering::Relaxed);
        self.0.ops.fetch_add(ops.into(), Ordering::Relaxed);
    }

    pub(super) fn note_frame_out(&self) {
        self.0.frames_out.fetch_add(1, Ordering::Relaxed);
    }

    /// An op waits from now on.
    pub(super) fn begin_op(&self) {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// So many ops wait no more.
    pub(super) fn end_ops(&self, ops: usize) {
        self.0.waiting.fetch_sub(ops as u64, Ordering::Relaxed);
    }
}

impl OpenStream {
    /// If it ends now, that is why.
    pub(super) fn ends_by(&mut self, end: StreamEnd) {
        self.end = end;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.tally.0.open.fetch_sub(1, Ordering::Relaxed);
        let end = if std::thread::panicking() { StreamEnd::Failed } else { self.end };
        self.tally.note_end(end);
    }
}
