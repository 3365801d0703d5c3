//! Processes that do not run, as whoever started them tells this node while that lasts. For people who ask who is missing;
//! nothing of it is replicated, and nobody decides by it.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_state::ids::{Incarnation, JobId, TaskId};

/// What was told is believed for so long: whoever tells it repeats it in time.
pub const HELD_BELIEVED_FOR: Duration = Duration::from_secs(15);
/// Processes of all jobs that are remembered. Of more nobody hears from this node.
const HELD_MAX: usize = 4_096;
/// Bytes of the kernel function's name that are kept.
const WAITS_IN_BYTES_MAX: usize = 64;

/// Why a process does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldState {
    /// Somebody has stopped it: a signal, or a debugger.
    Stopped,
    /// It waits in the kernel, for a disk as a rule.
    Disk,
}

/// A process that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldProcess {
    pub incarnation: Incarnation,
    pub state: HeldState,
    /// The kernel's function in which it waits; empty: not known.
    pub waits_in: String,
    /// For how long this node has known it.
    pub since: Duration,
}

struct Held {
    incarnation: Incarnation,
    state: HeldState,
    waits_in: String,
    since: Instant,
    told: Instant,
}

/// The processes that do not run, by their tasks.
#[derive(Default)]
pub(crate) struct HeldProcesses(Mutex<BTreeMap<(JobId, TaskId), Held>>);

impl HeldState {
    /// As Linux calls it; `None`: such a process runs, or is no more.
    #[must_use]
    pub fn of_letter(letter: &str) -> Option<Self> {
        match letter {
            "T" | "t" => Some(Self::Stopped),
            "D" => Some(Self::Disk),
            _ => None,
        }
    }

    /// As Linux calls it.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::Stopped => "T",
            Self::Disk => "D",
        }
    }
}

impl HeldProcesses {
    /// That process does not run. Told again, it is the same one for as long as it is believed.
    pub(crate) fn hold(
        &self,
        place: (JobId, TaskId),
        (incarnation, state): (Incarnation, HeldState),
        mut waits_in: String,
    ) {
        waits_in.truncate(waits_in.floor_char_boundary(WAITS_IN_BYTES_MAX));
        let now = Instant::now();
        let mut held = self.0.lock();
        if held.len() >= HELD_MAX && !held.contains_key(&place) {
            held.retain(|_, held| held.is_believed(now));
            if held.len() >= HELD_MAX {
                return;
            }
        }
        let before = held.get(&place).filter(|before| before.is_believed(now));
        let is_same = |before: &&Held| before.incarnation == incarnation && before.state == state;
        let since = before.filter(is_same).map_or(now, |before| before.since);
        held.insert(place, Held { incarnation, state, waits_in, since, told: now });
    }

    /// That process runs again, which says nothing of another life of its task.
    pub(crate) fn release(&self, place: (JobId, TaskId), incarnation: Incarnation) {
        let mut held = self.0.lock();
        if held.get(&place).is_some_and(|held| held.incarnation == incarnation) {
            held.remove(&place);
        }
    }

    /// Those of a job.
    pub(crate) fn of(&self, job: JobId) -> BTreeMap<TaskId, HeldProcess> {
        let now = Instant::now();
        let held = self.0.lock();
        let of_job = held.range((job, TaskId(i32::MIN))..=(job, TaskId(i32::MAX)));
        let believed = of_job.filter(|(_, held)| held.is_believed(now));
        believed.map(|((_, task), held)| (*task, held.shown(now))).collect()
    }
}

impl Held {
    fn is_believed(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.told) < HELD_BELIEVED_FOR
    }

    fn shown(&self, now: Instant) -> HeldProcess {
        HeldProcess {
            incarnation: self.incarnation,
            state: self.state,
            waits_in: self.waits_in.clone(),
            since: now.saturating_duration_since(self.since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(1);
    const STOPPED: (Incarnation, HeldState) = (Incarnation(7), HeldState::Stopped);

    #[tokio::test(start_paused = true)]
    async fn who_is_told_in_time_stays_and_who_is_told_no_more_is_forgotten() {
        let held = HeldProcesses::default();
        held.hold((JOB, TaskId(2)), STOPPED, String::new());
        tokio::time::advance(Duration::from_secs(10)).await;
        held.hold((JOB, TaskId(2)), STOPPED, String::new());
        tokio::time::advance(Duration::from_secs(10)).await;
        let known = held.of(JOB);
        assert_eq!((known.len(), known[&TaskId(2)].since), (1, Duration::from_secs(20)));
        assert!(held.of(JobId(2)).is_empty());
        held.hold((JOB, TaskId(2)), (Incarnation(8), HeldState::Stopped), String::new());
        assert_eq!(held.of(JOB)[&TaskId(2)].since, Duration::ZERO, "another life");
        tokio::time::advance(HELD_BELIEVED_FOR).await;
        assert!(held.of(JOB).is_empty());
        held.hold((JOB, TaskId(2)), STOPPED, "x".repeat(200));
        assert_eq!(held.of(JOB)[&TaskId(2)].waits_in.len(), WAITS_IN_BYTES_MAX);
        held.release((JOB, TaskId(2)), Incarnation(6));
        assert_eq!(held.of(JOB).len(), 1, "an earlier life runs again");
        held.release((JOB, TaskId(2)), Incarnation(7));
        assert!(held.of(JOB).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn of_more_than_there_is_room_for_the_first_ones_stay() {
        let held = HeldProcesses::default();
        let all = i32::try_from(HELD_MAX).expect("few");
        (0..=all).for_each(|task| held.hold((JOB, TaskId(task)), STOPPED, String::new()));
        assert_eq!((held.of(JOB).len(), held.of(JOB).contains_key(&TaskId(all))), (HELD_MAX, false));
        tokio::time::advance(HELD_BELIEVED_FOR).await;
        held.hold((JOB, TaskId(all)), STOPPED, String::new());
        assert_eq!(held.of(JOB).len(), 1);
    }

    #[test]
    fn letters_are_those_of_linux() {
        for state in [HeldState::Stopped, HeldState::Disk] {
            assert_eq!(HeldState::of_letter(state.letter()), Some(state));
        }
        let others = ["", "S", "R", "Z", "TT"].map(HeldState::of_letter);
        assert_eq!((others, HeldState::of_letter("t")), ([None; 5], Some(HeldState::Stopped)));
    }
}
