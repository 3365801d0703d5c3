//! The ops of a stream that are under way, by their tags.

use std::collections::HashMap;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::op::{Answered, Op};
use super::tally::StreamTally;
use super::woken::{OpWaker, Woken};
use crate::arrived;

/// Those of one stream.
pub(super) struct Ops {
    under_way: HashMap<u32, Entry>,
    woken: Arc<Woken>,
    /// Room for the tags of those that were woken.
    tags: Vec<u32>,
    tally: StreamTally,
}

struct Entry {
    op: Pin<Box<Op>>,
    own: Arc<OpWaker>,
    waker: Waker,
    /// Its client was told that it waits, and has its grant back.
    has_arrived: bool,
}

/// What has become of an op.
pub(super) enum Told {
    /// It has arrived, and waits.
    Arrived,
    /// It was answered.
    Answered {
        answered: Answered,
        /// It had arrived before.
        had_arrived: bool,
    },
}

impl Ops {
    /// None, of which those that begin are counted there.
    pub(super) fn counted(tally: StreamTally) -> Self {
        Self { under_way: HashMap::new(), woken: Arc::default(), tags: Vec::new(), tally }
    }

    pub(super) fn has(&self, tag: u32) -> bool {
        self.under_way.contains_key(&tag)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Begins one with a tag that is free.
    pub(super) fn begin(&mut self, tag: u32, op: Op) -> Option<Told> {
        let own = OpWaker::of(tag, &self.woken);
        let waker = Waker::from(Arc::clone(&own));
        let mut entry = Entry { op: Box::pin(op), own, waker, has_arrived: false };
        let told = entry.poll();
        if !matches!(told, Some(Told::Answered { .. })) {
            self.tally.begin_op();
            self.under_way.insert(tag, entry);
        }
        told
    }

    /// Gives one up. Whether its grant is to be given back; `None` if there is none with that tag.
    pub(super) fn cancel(&mut self, tag: u32) -> Option<bool> {
        let entry = self.under_way.remove(&tag)?;
        self.tally.end_ops(1);
        Some(!entry.has_arrived)
    }

    /// Looks who was woken. Whoever is woken from now on wakes the task of `context`. Whether anybody was, who is then to be
    /// [polled](Self::poll_woken).
    pub(super) fn begin_poll(&mut self, context: &Context<'_>) -> bool {
        self.woken.take(&mut self.tags, context.waker());
        !self.tags.is_empty()
    }

    /// Polls those of whom [`Self::begin_poll`] has learned.
    pub(super) fn poll_woken(&mut self, tell: impl FnMut(u32, Told)) {
        let mut tags = std::mem::take(&mut self.tags);
        self.poll_each(&tags, tell);
        tags.clear();
        self.tags = tags;
    }

    /// Polls all of them.
    pub(super) fn poll_all(&mut self, tell: impl FnMut(u32, Told)) {
        let mut tags: Vec<u32> = self.under_way.keys().copied().collect();
        // A run must be repeatable.
        tags.sort_unstable();
        self.poll_each(&tags, tell);
    }

    fn poll_each(&mut self, tags: &[u32], mut tell: impl FnMut(u32, Told)) {
        for tag in tags {
            let Some(told) = self.under_way.get_mut(tag).and_then(Entry::poll) else { continue };
            if let Told::Answered { .. } = told {
                self.under_way.remove(tag);
                self.tally.end_ops(1);
            }
            tell(*tag, told);
        }
    }
}

impl Drop for Ops {
    fn drop(&mut self) {
        self.tally.end_ops(self.under_way.len());
    }
}

impl Entry {
    /// What is to be told of it now.
    fn poll(&mut self) -> Option<Told> {
        let Self { op, own, waker, has_arrived } = self;
        own.begin();
        let mut context = Context::from_waker(waker);
        let (polled, arrives) = arrived::noticing(|| op.as_mut().poll(&mut context));
        match polled {
            Poll::Ready(answered) => Some(Told::Answered { answered, had_arrived: *has_arrived }),
            Poll::Pending if arrives && !*has_arrived => {
                *has_arrived = true;
                Some(Told::Arrived)
            }
            Poll::Pending => None,
        }
    }
}
