//! How long a write takes, stage by stage.
//!
//! | stage | from | to | counted |
//! |---|---|---|---|
//! | queue | a proposal is given to the engine | it is appended to the log in memory | one of 32 proposals |
//! | append | the oldest entry of a group is appended in memory | the group is written, not yet flushed | each group |
//! | flush | the flush of the journal begins | it ends | each flush |
//! | replicate | an entry is appended in memory | it is on a quorum, and its turn to be applied has come | one of 32 |
//! | apply | a batch of committed entries begins to be applied | their effects are told | each batch |
//! | reply | an entry's batch is applied | its proposer goes on | one of 32 proposals |
//!
//! Append, flush and apply are counted on every node; the others where proposals are: on the leader. `append`
//! and `flush` of the leader's own disk run beside `replicate`, which they are a part of when its own disk is
//! the one waited for.
//!
//! The path of a write is the most expensive thing here, so nothing below takes a lock or allocates, and the
//! clock is read five times a group (once for append, twice each for flush and apply), and three times more
//! for one of 32 proposals. All of it together is in docs/decisions/019-metrics.md.

mod followed;
mod histogram;
mod recent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use openraft::EntryPayload;

use crate::base::types::Entry;

use followed::{Followed, Proposals};
use histogram::Histogram;
use recent::Recent;

pub use histogram::HistogramView;

/// How long each stage took, so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StageTimes {
    pub queue: HistogramView,
    pub append: HistogramView,
    pub flush: HistogramView,
    pub replicate: HistogramView,
    pub apply: HistogramView,
    pub reply: HistogramView,
}

/// How long the disk took lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlushTimes {
    /// Flushes within the last minute.
    pub count: u64,
    /// `None` without flushes. Rounded up by a quarter at most.
    pub p50: Option<Duration>,
    pub p99: Option<Duration>,
    /// How long the flush under way has taken so far.
    pub under_way: Option<Duration>,
}

/// Measures the writes of one node. Clones measure the same.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// All times are nanoseconds from here on.
    zero: Instant,
    queue: Histogram,
    append: Histogram,
    flush: Histogram,
    replicate: Histogram,
    apply: Histogram,
    reply: Histogram,
    recent_flushes: Recent,
    proposals: Proposals,
    followed: Followed,
    /// When the oldest entry that no group of the writer holds yet was appended; 0: there is none.
    waiting_since_ns: AtomicU64,
    /// When the last flush began.
    flush_began_ns: AtomicU64,
    /// When the flush under way began; 0: there is none.
    flushing_since_ns: AtomicU64,
}

/// A group that the writer is about to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    oldest_ns: u64,
}

/// A batch of entries that is being applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Applying {
    began_ns: u64,
    first: u64,
    last: u64,
}

impl Default for Stages {
    fn default() -> Self {
        let inner = Inner {
            zero: Instant::now(),
            queue: Histogram::default(),
            append: Histogram::default(),
            flush: Histogram::default(),
            replicate: Histogram::default(),
            apply: Histogram::default(),
            reply: Histogram::default(),
            recent_flushes: Recent::default(),
            proposals: Proposals::default(),
            followed: Followed::default(),
            waiting_since_ns: AtomicU64::new(0),
            flush_began_ns: AtomicU64::new(0),
            flushing_since_ns: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Stages {
    /// Reads the clock. Never 0, which stands for no time.
    fn now_ns(&self) -> u64 {
        u64::try_from(self.inner.zero.elapsed().as_nanos()).map_or(u64::MAX, |nanos| nanos.max(1))
    }

    /// Entries were appended to the log in memory, and are about to be given to the writer.
    pub(crate) fn appended(&self, entries: &[Entry]) {
        let mut now_ns = None;
        // Others of the same group have come before: theirs is the time that counts.
        if self.inner.waiting_since_ns.load(Ordering::Relaxed) == 0 {
            let now_ns = *now_ns.insert(self.now_ns());
            self.inner.waiting_since_ns.store(now_ns, Ordering::Relaxed);
        }
        let Some(followed) = self.followed_payload() else { return };
        let index = entries.iter().find_map(|entry| match &entry.payload {
            EntryPayload::Normal(command) if command.payload.as_ptr() as usize == followed => {
                Some(entry.log_id.index)
            }
            _ => None,
        });
        if let Some(index) = index {
            self.followed_appended(index, now_ns.unwrap_or_else(|| self.now_ns()));
        }
    }

    /// The writer has put a group together.
    pub(crate) fn group(&self) -> Group {
        Group { oldest_ns: self.inner.waiting_since_ns.swap(0, Ordering::Relaxed) }
    }

    /// The group is durable.
    pub(crate) fn durable(&self, group: Group) {
        let written_ns = self.inner.flush_began_ns.load(Ordering::Relaxed);
        // An entry that came between two steps of the writer may be timed with the group before its own.
        if group.oldest_ns != 0 && written_ns >= group.oldest_ns {
            self.inner.append.record(written_ns - group.oldest_ns);
        }
    }

    /// The journal is flushed from now on, until [`Self::flush_ended`].
    pub(crate) fn flush_began(&self) {
        let now_ns = self.now_ns();
        self.inner.flush_began_ns.store(now_ns, Ordering::Relaxed);
        self.inner.flushing_since_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn flush_ended(&self) {
        let now_ns = self.now_ns();
        let took_ns = now_ns.saturating_sub(self.inner.flush_began_ns.load(Ordering::Relaxed));
        self.inner.flushing_since_ns.store(0, Ordering::Relaxed);
        self.inner.flush.record(took_ns);
        self.inner.recent_flushes.record(now_ns, took_ns);
    }

    /// Entries `first` to `last` are applied from now on, until [`Self::applied`].
    pub(crate) fn applying(&self, first: u64, last: u64) -> Applying {
        Applying { began_ns: self.now_ns(), first, last }
    }

    pub(crate) fn applied(&self, batch: Applying) {
        let ended_ns = self.now_ns();
        self.inner.apply.record(ended_ns.saturating_sub(batch.began_ns));
        if self.follows_within(batch.first, batch.last) {
            self.followed_applied(batch.began_ns, ended_ns);
        }
    }

    /// What has been measured so far.
    pub(crate) fn times(&self) -> StageTimes {
        StageTimes {
            queue: self.inner.queue.view(),
            append: self.inner.append.view(),
            flush: self.inner.flush.view(),
            replicate: self.inner.replicate.view(),
            apply: self.inner.apply.view(),
            reply: self.inner.reply.view(),
        }
    }

    /// How long the disk took within the last minute.
    pub(crate) fn flush_times(&self) -> FlushTimes {
        let now_ns = self.now_ns();
        let recent = self.inner.recent_flushes.view(now_ns);
        let since_ns = self.inner.flushing_since_ns.load(Ordering::Relaxed);
        FlushTimes {
            count: recent.count(),
            p50: recent.quantile(500),
            p99: recent.quantile(990),
            under_way: (since_ns != 0).then(|| Duration::from_nanos(now_ns.saturating_sub(since_ns))),
        }
    }

    /// Proposals that have no outcome yet.
    pub(crate) fn proposals(&self) -> u64 {
        self.inner.proposals.under_way()
    }
}

#[cfg(test)]
mod tests;
