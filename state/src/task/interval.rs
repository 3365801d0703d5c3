//! How often tasks promise a heartbeat, where that matters for how long they may be silent.
//!
//! A client's heartbeat timeout never crosses the wire; half of it does, as the deadline of each heartbeat, and it is
//! the interval at which that client sends them. Where the job gives up sooner than its clients expect, it goes by the
//! slower of the two: nobody is given up for being as slow as its program was told to be.

use imbl::OrdMap;

use crate::command::{Answer, Reply, Scope};
use crate::fault::{Asked, Fault};
use crate::ids::{DurationMs, Incarnation, TaskId};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::limits::TIMEOUT_MS_MAX;
use crate::runtime;
use crate::task::{Command, Phase, Silence};

/// How long a task may take to its first heartbeat where its interval is not known, if its job gives up sooner: clients
/// send the first one after one interval, which is 50 s by default in jaxlib.
pub const FIRST_HEARTBEAT_MS: DurationMs = DurationMs(60_000);
/// The longest interval: half of the longest timeout.
pub const HEARTBEAT_INTERVAL_MS_MAX: DurationMs = DurationMs(TIMEOUT_MS_MAX / 2);
/// Clients round deadlines, to three digits: two that differ by less than this part of the longer one are the same.
const SAME_WITHIN_PERCENT: u64 = 5;

/// The intervals of the tasks of a job, each with the life of which it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Intervals(OrdMap<TaskId, (Incarnation, DurationMs)>);

impl Intervals {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskId, Incarnation, DurationMs)> + '_ {
        self.0.iter().map(|(task, (incarnation, interval))| (*task, *incarnation, *interval))
    }

    /// That of this life of the task.
    pub(crate) fn of(&self, task: TaskId, incarnation: Incarnation) -> Option<DurationMs> {
        self.0.get(&task).filter(|(of, _)| *of == incarnation).map(|(_, interval)| *interval)
    }

    /// Another life begins.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Puts back one of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, task: TaskId, incarnation: Incarnation, interval: DurationMs) -> bool {
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        self.0.insert(task, (incarnation, interval));
        ascending && is_legal(interval)
    }
}

/// How long a task may be silent that sends a heartbeat at this interval, in a job that gives up after `timeout`.
fn tolerated(timeout: DurationMs, interval: DurationMs) -> DurationMs {
    let promised = DurationMs(interval.0.saturating_mul(2));
    if exceeds(promised, timeout) { promised } else { timeout }
}

/// Whether `longer` is the longer one by more than what rounding does.
fn exceeds(longer: DurationMs, shorter: DurationMs) -> bool {
    let margin = longer.0.saturating_mul(SAME_WITHIN_PERCENT) / 100;
    longer.0.saturating_sub(shorter.0) > margin
}

fn is_legal(interval: DurationMs) -> bool {
    (1..=HEARTBEAT_INTERVAL_MS_MAX.0).contains(&interval.0)
}

/// What a client says, within bounds.
fn bounded(interval: DurationMs) -> Option<DurationMs> {
    (interval.0 > 0).then(|| interval.min(HEARTBEAT_INTERVAL_MS_MAX))
}

impl Job {
    /// How long a task may be silent. `told` is the interval that its heartbeat tells just now.
    pub(crate) fn silence(
        &self,
        task: TaskId,
        incarnation: Incarnation,
        told: Option<DurationMs>,
    ) -> Silence {
        let own_ms = self.spec.heartbeat_timeout_ms;
        // Clients of the oldest protocol send their first heartbeat at once.
        let beats_late = incarnation != runtime::INCARNATION;
        let interval = told.and_then(bounded).or_else(|| self.intervals.of(task, incarnation));
        Silence {
            own_ms,
            tolerated_ms: interval.map_or(own_ms, |interval| tolerated(own_ms, interval)),
            first_ms: (interval.is_none() && beats_late).then(|| own_ms.max(FIRST_HEARTBEAT_MS)),
        }
    }

    /// What is to be noted of a heartbeat that promises the next one within `told`, or does not say: what is news, and
    /// either keeps a slow task alive or tells a new leader that it need not wait for a first heartbeat.
    pub(crate) fn interval_to_note(
        &self,
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
        told: Option<DurationMs>,
    ) -> Option<Command> {
        let connected = self.tasks.contains(task) && {
            let record = self.tasks.get(task);
            record.phase() == Phase::Connected && record.incarnation == incarnation
        };
        if !connected {
            return None;
        }
        let own = self.spec.heartbeat_timeout_ms;
        let told = told.and_then(bounded);
        // Who does not say sends them as the job asks.
        let interval = told.unwrap_or(DurationMs(own.0 / 2));
        let is_news = match self.intervals.of(task, incarnation) {
            Some(known) => told.is_some() && (exceeds(interval, known) || exceeds(known, interval)),
            None => own < FIRST_HEARTBEAT_MS || tolerated(own, interval) > own,
        };
        is_news.then_some(Command::NoteInterval { scope, task, incarnation, interval_ms: interval })
    }
}

impl Turn<'_> {
    pub(crate) fn note_interval(
        &mut self,
        task: TaskId,
        incarnation: Incarnation,
        interval: DurationMs,
    ) -> Reply {
        self.known(task, Asked::Heartbeat)?;
        if !is_legal(interval) {
            let (what, limit) =
                ("milliseconds between two heartbeats".to_owned(), HEARTBEAT_INTERVAL_MS_MAX.0);
            return Err(Fault::LimitExceeded { what, limit, actual: interval.0 });
        }
        let record = self.job.tasks.get(task);
        if record.phase() == Phase::Connected && record.incarnation == incarnation {
            self.job.intervals.0.insert(task, (incarnation, interval));
        }
        Ok(Answer::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> DurationMs {
        DurationMs(ms)
    }

    #[test]
    fn the_slower_of_the_two_counts_and_rounding_does_not() {
        assert_eq!(tolerated(ms(10_000), ms(50_000)), ms(100_000));
        assert_eq!(tolerated(ms(10_000), ms(5_000)), ms(10_000));
        assert_eq!(tolerated(ms(60_000), ms(2_500)), ms(60_000), "a faster program changes nothing");
        assert_eq!(tolerated(ms(100_000), ms(50_400)), ms(100_000), "gRPC rounds to three digits");
        assert_eq!(tolerated(ms(1), ms(u64::MAX)), ms(u64::MAX));
    }
}
