//! Time as this process lived it. Who was stopped, or starved of a processor, heard nobody meanwhile; that must
//! not count against those who could not be heard.

use std::time::Duration;

use tokio::time::Instant;

/// A tick that comes later than this after its predecessor means that the process did not run.
const GAP: Duration = Duration::from_secs(1);

/// A point in the time that this process was awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

/// A monotonic clock that leaves out the pauses.
#[derive(Debug)]
pub(crate) struct Awake {
    started: Instant,
    last_tick: Instant,
    paused: Duration,
}

impl Default for Awake {
    fn default() -> Self {
        let now = Instant::now();
        Self { started: now, last_tick: now, paused: Duration::ZERO }
    }
}

impl Awake {
    pub(crate) fn now(&self) -> Moment {
        Moment(self.started.elapsed().saturating_sub(self.paused))
    }

    /// To be called by a steady timer. Gives the length of the pause that has just ended, if one has.
    pub(crate) fn tick(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let gap = now - self.last_tick;
        self.last_tick = now;
        if gap <= GAP {
            return None;
        }
        self.paused += gap;
        Some(gap)
    }
}

impl Moment {
    pub(crate) fn plus(self, length: Duration) -> Self {
        Self(self.0.saturating_add(length))
    }
}
