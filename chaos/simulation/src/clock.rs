//! The clock of a simulated process, which is set by that of its machine and goes on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use tripod_raft::Handle;
use tripod_state::State;
use tripod_state::ids::TimeMs;

use super::observation::SimTime;
use super::witness::now;

/// When the simulation begins, by the clocks on its walls: some day in 2026.
const EPOCH_MS: u64 = 1_780_000_000_000;

/// As the real one it never stands still and never runs back, and catches up with the log when its node begins to
/// lead. Worse than the real one, it follows its machine's clock forward while it runs.
#[derive(Debug)]
pub(crate) struct ProcessClock {
    /// By how much the machine's clock is off.
    off_ms: Arc<AtomicI64>,
    /// When it was last read, and what it said.
    last: Mutex<(SimTime, TimeMs)>,
}

impl ProcessClock {
    pub(crate) fn of(off_ms: &Arc<AtomicI64>) -> Arc<Self> {
        Arc::new(Self { off_ms: Arc::clone(off_ms), last: Mutex::default() })
    }

    pub(crate) fn read(&self) -> TimeMs {
        self.read_at(now(), TimeMs(0))
    }

    /// Has it catch up with the log's time whenever the node begins to lead.
    pub(crate) async fn keep(self: Arc<Self>, node: Handle) {
        let mut leadership = node.leadership();
        let mut led_term = None;
        while let Ok(seen) = leadership.wait_for(|seen| seen.ready_here && Some(seen.term) != led_term).await
        {
            led_term = Some(seen.term);
            drop(seen);
            self.read_at(now(), node.read(State::now_ms));
        }
    }

    fn read_at(&self, at: SimTime, least: TimeMs) -> TimeMs {
        let mut last = self.last.lock();
        let counted = last.1.0 + at.since_ms(last.0);
        let machine = (EPOCH_MS + at.0).saturating_add_signed(self.off_ms.load(Ordering::Relaxed));
        let time = TimeMs(counted.max(machine).max(least.0));
        *last = (at, time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_forward_with_its_machine_and_on_by_itself() {
        let off_ms = Arc::<AtomicI64>::default();
        let clock = ProcessClock::of(&off_ms);
        let read = |at| clock.read_at(SimTime(at), TimeMs(0)).0 - EPOCH_MS;
        assert_eq!(read(10), 10);
        off_ms.store(1000, Ordering::Relaxed);
        assert_eq!(read(20), 1020);
        off_ms.store(-1000, Ordering::Relaxed);
        assert_eq!(read(50), 1050);
        assert_eq!(clock.read_at(SimTime(60), TimeMs(EPOCH_MS + 5000)).0 - EPOCH_MS, 5000);
        assert_eq!(read(61), 5001);
    }
}
