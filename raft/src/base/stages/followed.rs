//! One proposal at a time, followed on its way through the engine.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use super::Stages;

/// Of so many proposals one is followed, if none is at that moment. Reading the clock for each would cost two
/// reads an entry where everything else costs five a group of hundreds; and a distribution needs no more than
/// this.
const FOLLOWED_OF: u64 = 32;

/// Where the followed proposal is. The numbers are only for measuring: whoever reads one while it changes
/// counts one duration wrongly, which can only happen when a proposal was given up by its caller.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// The address of its payload, which it keeps on its whole way; 0: none is followed.
    payload: AtomicUsize,
    submitted_ns: AtomicU64,
    appended_ns: AtomicU64,
    /// Where it is in the log; 0: not there yet.
    index: AtomicU64,
    /// When it was applied; 0: not yet.
    applied_ns: AtomicU64,
}

/// Proposals under way, as their submitter counts them.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Proposals {
    pub(super) fn under_way(&self) -> u64 {
        // In this order: one that ends in between is then not counted as one too few.
        let ended = self.ended.load(Ordering::Relaxed);
        self.begun.load(Ordering::Relaxed).saturating_sub(ended)
    }
}

/// Some proposals of one caller, counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Proposing<'a> {
    stages: &'a Stages,
    count: u64,
    /// One of them is the followed one. Its payload must not go before: another might get its address.
    followed: Option<Bytes>,
}

impl Stages {
    /// Begins to count `payloads`, and perhaps to follow one of them.
    pub(crate) fn propose(&self, payloads: &[Bytes]) -> Proposing<'_> {
        let count = payloads.len() as u64;
        let before = self.inner.proposals.begun.fetch_add(count, Ordering::Relaxed);
        let is_due = before / FOLLOWED_OF != (before + count) / FOLLOWED_OF;
        let followed = payloads.last().filter(|payload| is_due && self.follow(payload));
        Proposing { stages: self, count, followed: followed.cloned() }
    }

    fn follow(&self, payload: &Bytes) -> bool {
        let followed = &self.inner.followed;
        if followed.payload.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let now_ns = self.now_ns();
        let (address, success) = (payload.as_ptr() as usize, Ordering::AcqRel);
        // Until the address is there nobody reads the rest.
        if followed.payload.compare_exchange(0, usize::MAX, success, Ordering::Relaxed).is_err() {
            return false;
        }
        followed.submitted_ns.store(now_ns, Ordering::Relaxed);
        followed.index.store(0, Ordering::Relaxed);
        followed.applied_ns.store(0, Ordering::Relaxed);
        followed.payload.store(address, Ordering::Release);
        true
    }

    /// Which payload is followed.
    pub(super) fn followed_payload(&self) -> Option<usize> {
        let address = self.inner.followed.payload.load(Ordering::Acquire);
        (address != 0).then_some(address)
    }

    /// The followed proposal was appended to the log.
    pub(super) fn followed_appended(&self, index: u64, now_ns: u64) {
        let followed = &self.inner.followed;
        let submitted_ns = followed.submitted_ns.load(Ordering::Relaxed);
        self.inner.queue.record(now_ns.saturating_sub(submitted_ns));
        followed.appended_ns.store(now_ns, Ordering::Relaxed);
        followed.index.store(index, Ordering::Release);
    }

    /// Whether the followed proposal is one of these entries of the log.
    pub(super) fn follows_within(&self, first: u64, last: u64) -> bool {
        let index = self.inner.followed.index.load(Ordering::Acquire);
        index != 0 && (first..=last).contains(&index)
    }

    /// The followed proposal was committed, and is applied.
    pub(super) fn followed_applied(&self, began_ns: u64, ended_ns: u64) {
        let followed = &self.inner.followed;
        let appended_ns = followed.appended_ns.load(Ordering::Relaxed);
        self.inner.replicate.record(began_ns.saturating_sub(appended_ns));
        followed.applied_ns.store(ended_ns, Ordering::Release);
    }
}

impl Proposing<'_> {
    /// The last of them has its reply.
    pub(crate) fn answered(self) {
        if self.followed.is_some() {
            let applied_ns = self.stages.inner.followed.applied_ns.load(Ordering::Acquire);
            if applied_ns != 0 {
                let now_ns = self.stages.now_ns();
                self.stages.inner.reply.record(now_ns.saturating_sub(applied_ns));
            }
        }
    }
}

impl Drop for Proposing<'_> {
    fn drop(&mut self) {
        let inner = &self.stages.inner;
        inner.proposals.ended.fetch_add(self.count, Ordering::Relaxed);
        if self.followed.is_some() {
            inner.followed.index.store(0, Ordering::Relaxed);
            inner.followed.payload.store(0, Ordering::Release);
        }
    }
}
