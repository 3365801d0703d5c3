//! Bugs on purpose.
//!
//! A suite of faults and checkers that finds nothing proves little until it has found something. A build with
//! the feature `planted` can be told to break one promise; every other build cannot: there [`is_planted`] is
//! `false` at compile time, and nothing of a bug is left in it. The choice is one for the whole process and is made
//! before anything is applied, so that replicas still agree on what the log means.

/// A promise that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A node answers reads from what it happens to have applied.
    StaleReads = 1,
    /// Writes are acknowledged before they are durable.
    EarlyAcknowledgement,
    /// A node's vote is not stored.
    ForgottenVote,
    /// Heartbeats of a task's earlier life are taken for those of its present one.
    SkippedIncarnation,
    /// The arrivals of some tasks at barriers are confirmed and forgotten.
    DroppedArrival,
    /// A command that is repeated takes effect again.
    DoubleApply,
    /// A node is given a rank that another one has.
    RankTwice,
    /// Of events that are to be told, some are skipped.
    EventLost,
    /// A graph that is stopped is cancelled, also after it has succeeded.
    GraphEndsTwice,
    /// What is sealed may be sealed once more, as of another time.
    SealedTwice,
    /// A node tells leaders that ask the vote that it held when it started.
    StaleVote,
}

impl Bug {
    pub const ALL: [Self; 11] = [
        Self::StaleReads,
        Self::EarlyAcknowledgement,
        Self::ForgottenVote,
        Self::SkippedIncarnation,
        Self::DroppedArrival,
        Self::DoubleApply,
        Self::RankTwice,
        Self::EventLost,
        Self::GraphEndsTwice,
        Self::SealedTwice,
        Self::StaleVote,
    ];

    /// As it is written on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StaleReads => "stale-reads",
            Self::EarlyAcknowledgement => "early-acknowledgement",
            Self::ForgottenVote => "forgotten-vote",
            Self::SkippedIncarnation => "skipped-incarnation",
            Self::DroppedArrival => "dropped-arrival",
            Self::DoubleApply => "double-apply",
            Self::RankTwice => "rank-twice",
            Self::EventLost => "event-lost",
            Self::GraphEndsTwice => "graph-ends-twice",
            Self::SealedTwice => "sealed-twice",
            Self::StaleVote => "stale-vote",
        }
    }

    /// The bug of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Breaks a promise in this process, or with `None` keeps all of them again.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), std::sync::atomic::Ordering::Relaxed);
}

/// Whether this process breaks that promise.
#[cfg(feature = "planted")]
#[must_use]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Whether this process breaks that promise: never.
#[cfg(not(feature = "planted"))]
#[inline]
#[must_use]
pub const fn is_planted(_: Bug) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_bugs() {
        for bug in Bug::ALL {
            assert_eq!(Bug::named(bug.name()), Some(bug));
        }
        assert_eq!(Bug::named("none"), None);
    }

    #[cfg(not(feature = "planted"))]
    #[test]
    fn an_ordinary_build_breaks_no_promise() {
        const { assert!(!is_planted(Bug::StaleReads)) }
        assert!(Bug::ALL.into_iter().all(|bug| !is_planted(bug)));
    }
}
