//! How often tasks promise a heartbeat, where that matters for how long they may be silent.
//!
//! A client's heartbeat timeout never crosses the wire; half of it does, as the deadline of each heartbeat, and it is
//! the interval at which that client sends them. Where the job gives up sooner than its clients expect, it goes by the
//! slower of the two: nobody is given up for being as slow as its program was told to be.

use crate::command::{Answer, Reply, Scope};
use crate::fault::{Asked, Fault};
use crate::ids::{DurationMs, FeatureLevel, Incarnation, JobId, TaskId};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::level::Kind;
use crate::limits::TIMEOUT_MS_MAX;
use crate::memory::all_inside;
use crate::runtime;
use crate::snapshot::record::Piece;
use crate::task::lives::{Lives, Told};
use crate::task::{Command, Phase, Silence};

/// How long a task may take to its first heartbeat where its interval is not known, if its job gives up sooner: clients
/// send the first one after one interval, which is 50 s by default in jaxlib.
pub const FIRST_HEARTBEAT_MS: DurationMs = DurationMs(60_000);
/// The longest interval: half of the longest timeout.
pub const HEARTBEAT_INTERVAL_MS_MAX: DurationMs = DurationMs(TIMEOUT_MS_MAX / 2);
/// Clients round deadlines, to three digits: two that differ by less than this part of the longer one are the same.
const SAME_WITHIN_PERCENT: u64 = 5;

/// The intervals of the tasks of a job. Without them the leader gives tasks the time that it gives all of which it knows
/// nothing.
pub(crate) type Intervals = Lives<Interval>;

/// How long a task lets pass between two heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Interval(DurationMs);

all_inside!(Interval);

impl Told for Interval {
    const KEPT_SINCE: FeatureLevel = Kind::TASK_NOTE_INTERVAL.needs;

    fn is_legal(&self) -> bool {
        is_legal(self.0)
    }

    fn record(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Piece {
        Piece::Interval { job, task, incarnation, interval_ms: self.0 }
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Interval { job, .. } = record else { return None };
        Some(*job)
    }

    fn of_record(record: Piece) -> Option<(TaskId, Incarnation, Self)> {
        let Piece::Interval { task, incarnation, interval_ms, .. } = record else { return None };
        Some((task, incarnation, Self(interval_ms)))
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
        let interval = told.and_then(bounded).or_else(|| self.known_interval(task, incarnation));
        Silence {
            own_ms,
            tolerated_ms: interval.map_or(own_ms, |interval| tolerated(own_ms, interval)),
            first_ms: (interval.is_none() && beats_late).then(|| own_ms.max(FIRST_HEARTBEAT_MS)),
        }
    }

    fn known_interval(&self, task: TaskId, incarnation: Incarnation) -> Option<DurationMs> {
        self.domains.intervals.of(task, incarnation).map(|known| known.0)
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
        let is_news = match self.known_interval(task, incarnation) {
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
            self.job.domains.intervals.keep(task, incarnation, Interval(interval));
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
