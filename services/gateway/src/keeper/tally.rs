//! What a leader counts of tasks and barriers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tripod_port::{Timings, TimingsView};

use super::meetings::BarrierEnding;

/// Why a task was given up that its program did not end by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyLost {
    /// It was silent for longer than its job allows.
    Silent,
    /// Its process is known to be no more: its connection ended with it.
    Gone,
    /// Its launcher told how its process ended.
    Ended,
}

/// Counted since the process started, on whichever node did it.
#[derive(Debug, Default)]
pub(crate) struct KeeperTally {
    lost: [AtomicU64; WhyLost::ALL.len()],
    failed: [AtomicU64; BarrierEnding::FAILURES.len()],
    waits: Timings,
}

/// What a node has counted of tasks and barriers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GangCounts {
    /// Tasks that were given up.
    pub lost: Vec<(WhyLost, u64)>,
    /// Barriers that failed while this node led.
    pub barriers_failed: Vec<(BarrierEnding, u64)>,
    /// How long barriers took that passed while this node led, from the first task to the last.
    pub barrier_waits: TimingsView,
}

impl WhyLost {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Silent, Self::Gone, Self::Ended];

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Gone => "gone",
            Self::Ended => "ended",
        }
    }
}

impl KeeperTally {
    pub(crate) fn lost(&self, why: WhyLost, tasks: usize) {
        self.lost[why as usize].fetch_add(tasks as u64, Ordering::Relaxed);
    }

    /// A barrier ended; `waited` is not known if it opened under an earlier leader.
    pub(super) fn barrier_ended(&self, ending: BarrierEnding, waited: Option<Duration>) {
        match BarrierEnding::FAILURES.into_iter().position(|failure| failure == ending) {
            Some(place) => {
                self.failed[place].fetch_add(1, Ordering::Relaxed);
            }
            None => {
                if let Some(waited) = waited {
                    self.waits.record(waited);
                }
            }
        }
    }

    pub(crate) fn counts(&self) -> GangCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GangCounts {
            lost: WhyLost::ALL.into_iter().zip(self.lost.iter().map(load)).collect(),
            barriers_failed: BarrierEnding::FAILURES.into_iter().zip(self.failed.iter().map(load)).collect(),
            barrier_waits: self.waits.view(),
        }
    }
}
