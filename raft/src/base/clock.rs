//! The wall clock, as an argument, and the real one.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tripod_state::ids::TimeMs;

/// Tells the time of day. A leader stamps its entries with it; nothing else here is judged by it.
pub type WallClock = Arc<dyn Fn() -> TimeMs + Send + Sync>;

/// By how much the machine's clock must leave the process's to be worth a word, in milliseconds. Clocks that
/// are slewed, and the pause between two reads, stay far below.
const JUMP_MS: u64 = 1000;

/// The time of day as this process tells it: read once, when it is first asked for, and from then on counted
/// by a clock that cannot be set. Somebody who sets the machine's clock moves it for nobody: log time never
/// runs back, so one hour forward, for one second, would be an hour that no session and no grace period gets
/// again. What the machine's clock says later counts from the next start of the process. Only when a node begins
/// to lead is it moved, forward, to a time that the log has already.
///
/// While the machine is suspended it stands still, as do all timers of the process.
#[must_use]
pub fn time_of_day() -> TimeMs {
    let (set_at, clock) = &*SET;
    let now = clock.after(set_at.elapsed());
    clock.compare(now, machine_ms());
    now
}

/// Has [`time_of_day`] go on from `log_time` if it is behind that. Without this, a leader whose machine's clock
/// was behind when the process started would have the log's time stand still, which never runs back: nothing
/// would expire until that clock has made up for it.
pub(crate) fn catch_up(log_time: TimeMs) {
    let (set_at, clock) = &*SET;
    clock.catch_up(set_at.elapsed(), log_time);
}

/// The clock of this process, and when it was set.
static SET: LazyLock<(Instant, SteadyClock)> =
    LazyLock::new(|| (Instant::now(), SteadyClock::set(machine_ms())));

/// What the machine's clock says. A clock before the epoch says zero.
fn machine_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    whole_ms(since)
}

fn whole_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A clock that was set once, and catches up with what is ahead of it. Pure: all times come in.
#[derive(Debug)]
struct SteadyClock {
    /// What it said when it was set, and so much more as it has caught up.
    set_ms: AtomicU64,
    /// By how much the machine's clock was ahead when it was last spoken of, in milliseconds.
    told_ms: AtomicI64,
}

impl SteadyClock {
    /// Sets it to what the machine's clock says.
    fn set(machine_ms: u64) -> Self {
        Self { set_ms: AtomicU64::new(machine_ms), told_ms: AtomicI64::new(0) }
    }

    /// What it says so long after it was set.
    fn after(&self, elapsed: Duration) -> TimeMs {
        TimeMs(self.set_ms.load(Ordering::Relaxed).saturating_add(whole_ms(elapsed)))
    }

    /// Moves it forward, so that so long after it was set it says `least`, or what it would say anyhow; gives by
    /// how many milliseconds, if that is worth a word.
    fn catch_up(&self, elapsed: Duration, least: TimeMs) -> Option<u64> {
        let least_ms = least.0.saturating_sub(whole_ms(elapsed));
        let behind_ms = least_ms.saturating_sub(self.set_ms.fetch_max(least_ms, Ordering::Relaxed));
        // The machine's clock is where it was: that it lies elsewhere now is no jump of its own.
        self.told_ms.fetch_sub(behind_ms.cast_signed(), Ordering::Relaxed);
        if behind_ms < JUMP_MS {
            return None;
        }
        tracing::warn!(
            behind_ms,
            "T3205 clock-behind: this node's time was behind the cluster's, because the machine's clock was when the \
             node started, or because the machine was suspended; the node leads on from the cluster's time"
        );
        Some(behind_ms)
    }

    /// Says once of every jump that the machine's clock has gone elsewhere; gives by how much it is ahead
    /// now, in milliseconds, if this was said.
    fn compare(&self, now: TimeMs, machine_ms: u64) -> Option<i64> {
        let ahead_ms = machine_ms.cast_signed().saturating_sub(now.0.cast_signed());
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        if ahead_ms.abs_diff(told_ms) < JUMP_MS {
            return None;
        }
        // One of those who see it at the same time says it.
        let first = self.told_ms.compare_exchange(told_ms, ahead_ms, Ordering::Relaxed, Ordering::Relaxed);
        first.ok()?;
        tracing::warn!(
            ahead_ms,
            "T3204 clock-set: this machine's clock was set while the node runs; the node's own time goes on \
             as it was, and takes the new one over when it is started again"
        );
        Some(ahead_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;
    const BEGIN_MS: u64 = 1_790_000_000_000;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn it_goes_on_at_its_own_pace_from_what_the_machine_said_first() {
        let clock = SteadyClock::set(BEGIN_MS);
        assert_eq!(clock.after(seconds(0)), TimeMs(BEGIN_MS));
        assert_eq!(clock.after(seconds(60)), TimeMs(BEGIN_MS + 60_000));
        assert_eq!(clock.after(Duration::MAX), TimeMs(u64::MAX));
    }

    #[test]
    fn a_clock_that_is_set_forward_or_back_changes_nothing_and_is_told_once() {
        let clock = SteadyClock::set(BEGIN_MS);
        let mut told = Vec::new();
        for second in 1..=100 {
            let machine_ms = match second {
                ..30 => BEGIN_MS + second * 1000,
                30..60 => BEGIN_MS + second * 1000 + HOUR_MS,
                _ => BEGIN_MS + second * 1000 - HOUR_MS,
            };
            let now = clock.after(seconds(second));
            assert_eq!(now, TimeMs(BEGIN_MS + second * 1000));
            told.extend(clock.compare(now, machine_ms).map(|ahead| (second, ahead)));
        }
        let hour = HOUR_MS.cast_signed();
        assert_eq!(told, [(30, hour), (60, -hour)]);
    }

    #[test]
    fn a_clock_that_is_behind_the_log_goes_on_from_there_and_one_that_is_ahead_as_it_was() {
        let clock = SteadyClock::set(BEGIN_MS - HOUR_MS);
        let machine_ms = |second: u64| BEGIN_MS - HOUR_MS + second * 1000;
        assert_eq!(clock.compare(clock.after(seconds(9)), machine_ms(9)), None);
        assert_eq!(clock.catch_up(seconds(10), TimeMs(BEGIN_MS)), Some(HOUR_MS - 10_000));
        assert_eq!(clock.after(seconds(10)), TimeMs(BEGIN_MS));
        assert_eq!(clock.after(seconds(70)), TimeMs(BEGIN_MS + 60_000), "it does not stand still");
        assert_eq!(clock.compare(clock.after(seconds(70)), machine_ms(70)), None, "nobody has set anything");
        // An entry that is older than what it says, as all are while it leads.
        assert_eq!(clock.catch_up(seconds(80), TimeMs(BEGIN_MS + 1000)), None);
        assert_eq!(clock.after(seconds(80)), TimeMs(BEGIN_MS + 70_000));
        // Clocks that are kept in step differ a little.
        assert_eq!(clock.catch_up(seconds(80), TimeMs(BEGIN_MS + 70_900)), None);
        assert_eq!(clock.after(seconds(80)), TimeMs(BEGIN_MS + 70_900));
        // Somebody sets the machine's clock right.
        assert_eq!(clock.compare(clock.after(seconds(90)), machine_ms(90) + HOUR_MS), Some(9_100));
    }

    #[test]
    fn a_clock_that_is_slewed_is_not_worth_a_word() {
        let clock = SteadyClock::set(BEGIN_MS);
        let off = [400, 999, 0].map(|off| clock.compare(TimeMs(BEGIN_MS), BEGIN_MS + off));
        assert_eq!(off, [None, None, None]);
        assert_eq!(clock.compare(TimeMs(BEGIN_MS), 0), Some(-BEGIN_MS.cast_signed()));
    }

    #[test]
    fn the_real_one_is_near_the_machines_and_never_runs_back() {
        let first = time_of_day();
        assert!(first.0.abs_diff(machine_ms()) < 60_000);
        let later: Vec<TimeMs> = (0..1000).map(|_| time_of_day()).collect();
        assert!(later.is_sorted() && later[0] >= first);
    }
}
