//! Processes that do not run, as whoever started them tells this node while that lasts. For people who ask who is missing;
//! nothing of it is replicated, and nobody decides by it.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_state::ids::{Incarnation, JobId, TaskId};

/// What was told is believed for so long: whoever tells it repeats it in time.
pub const HELD_BELIEVED_FOR: Duration = Duration::from_secs(15);
/// Processes of all jobs that are remembered. Of more nobody hears from this node: where they are too many, each job has as
/// many as any other, or all of its own.
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

/// The processes that do not run.
#[derive(Default)]
pub(crate) struct HeldProcesses(Mutex<Jobs>);

/// Of each job that has some, by their tasks.
#[derive(Default)]
struct Jobs(BTreeMap<JobId, BTreeMap<TaskId, Held>>);

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
        let mut jobs = self.0.lock();
        if !jobs.has_room(place, now) {
            return;
        }
        let (job, task) = place;
        let of_job = jobs.0.entry(job).or_default();
        let before = of_job.get(&task).filter(|before| before.is_believed(now));
        let is_same = |before: &&Held| before.incarnation == incarnation && before.state == state;
        let since = before.filter(is_same).map_or(now, |before| before.since);
        of_job.insert(task, Held { incarnation, state, waits_in, since, told: now });
    }

    /// That process runs again, which says nothing of another life of its task.
    pub(crate) fn release(&self, (job, task): (JobId, TaskId), incarnation: Incarnation) {
        let mut jobs = self.0.lock();
        let Some(of_job) = jobs.0.get_mut(&job) else { return };
        if of_job.get(&task).is_some_and(|held| held.incarnation == incarnation) {
            of_job.remove(&task);
        }
        if of_job.is_empty() {
            jobs.0.remove(&job);
        }
    }

    /// Those of a job.
    pub(crate) fn of(&self, job: JobId) -> BTreeMap<TaskId, HeldProcess> {
        let now = Instant::now();
        let jobs = self.0.lock();
        let believed = jobs.0.get(&job).into_iter().flatten().filter(|(_, held)| held.is_believed(now));
        believed.map(|(task, held)| (*task, held.shown(now))).collect()
    }
}

impl Jobs {
    /// Whether that process is remembered, if need be in the place of one that is believed no longer, or else of the last one
    /// of a job that has more of them.
    fn has_room(&mut self, (job, task): (JobId, TaskId), now: Instant) -> bool {
        let is_known = self.0.get(&job).is_some_and(|of_job| of_job.contains_key(&task));
        if is_known || self.count() < HELD_MAX {
            return true;
        }
        self.0.retain(|_, of_job| {
            of_job.retain(|_, held| held.is_believed(now));
            !of_job.is_empty()
        });
        if self.count() < HELD_MAX {
            return true;
        }
        let own = self.0.get(&job).map_or(0, BTreeMap::len);
        let Some(largest) = self.0.values_mut().max_by_key(|of_job| of_job.len()) else { return true };
        let has_more = largest.len() > own + 1;
        if has_more {
            largest.pop_last();
        }
        has_more
    }

    fn count(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
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

    #[tokio::test(start_paused = true)]
    async fn jobs_with_too_many_leave_each_other_as_many_as_they_have_and_all_to_one_with_few() {
        let (held, [large, other, small]) = (HeldProcesses::default(), [1, 2, 3].map(JobId));
        let tell = |job: JobId, tasks: usize| {
            let tasks = i32::try_from(tasks).expect("few");
            (0..tasks).for_each(|task| held.hold((job, TaskId(task)), STOPPED, String::new()));
        };
        let counts = || [large, other, small].map(|job| held.of(job).len());
        tell(large, HELD_MAX);
        tell(small, 10);
        assert_eq!(counts(), [HELD_MAX - 10, 0, 10]);
        let half = (HELD_MAX - 10) / 2;
        tell(other, half + 10);
        assert_eq!(counts(), [half, half, 10]);
        for job in [large, other, large] {
            tell(job, half + 10);
            tell(small, 10);
            assert_eq!(counts(), [half, half, 10], "told again, nothing changes");
        }
        assert!(held.of(large).contains_key(&TaskId(0)), "the last ones give way");
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
