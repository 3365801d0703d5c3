//! Time as this process lived it. A process that was stopped, or starved of its processor, heard
//! nobody meanwhile; that must not count against those who could not be heard.

use std::time::Duration;

use tokio::time::Instant;
use tripod_state::ids::DurationMs;

use crate::clock::millis;

/// A tick that comes later than this after its predecessor means that the process did not run.
const GAP: Duration = Duration::from_secs(1);

/// A point in the time that this process was awake, counted from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

/// A monotonic clock that leaves out the pauses.
#[derive(Debug)]
pub struct Awake {
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
    /// How long this process was awake until now.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.started.elapsed().saturating_sub(self.paused))
    }

    /// To be called by a steady timer. Gives the length of the pause that has just ended, if one has.
    pub fn tick(&mut self) -> Option<Duration> {
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
    /// This moment plus `length`, at the end of time if that is beyond it.
    #[must_use]
    pub fn plus(self, length: DurationMs) -> Self {
        Self(self.0.saturating_add(Duration::from_millis(length.0)))
    }

    /// This moment less `length`, at the start if that is before it.
    #[must_use]
    pub fn minus(self, length: DurationMs) -> Self {
        Self(self.0.saturating_sub(Duration::from_millis(length.0)))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> DurationMs {
        DurationMs(millis(self.0.saturating_sub(earlier.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn leaves_out_a_pause() {
        let mut awake = Awake::default();
        for _ in 0..20 {
            tokio::time::advance(Duration::from_millis(50)).await;
            assert_eq!(awake.tick(), None);
        }
        let before = awake.now();

        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(awake.tick(), Some(Duration::from_secs(30)));

        assert_eq!(awake.now(), before);
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(awake.now(), before.plus(DurationMs(50)));
    }
}
