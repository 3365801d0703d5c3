//! What a job says to a heartbeat. Heartbeats themselves stay out of the log.

use std::sync::Arc;

use crate::command::{Answer, Reply, Scope};
use crate::fault::{Asked, Fault};
use crate::ids::{Incarnation, TaskId, TimeMs};
use crate::job::Poll;
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::planted::{Bug, is_planted};
use crate::runtime;
use crate::task::{Beat, Command, Phase};

impl Job {
    /// The verdict at `now`; the order of the checks is upstream's.
    pub(crate) fn beat(&self, scope: Scope, task: TaskId, incarnation: Incarnation, now: TimeMs) -> Beat {
        if incarnation == runtime::INCARNATION {
            return self.runtime_beat(task);
        }
        if !self.tasks.contains(task) {
            return Beat::Refused(Fault::TaskUnknown { task, asked: Asked::Heartbeat });
        }
        let record = self.tasks.get(task);
        if let Some(existing) = record.error() {
            return Beat::Refused(Fault::BeatInError { task, existing: existing.cited() });
        }
        if record.gone(now) {
            return Beat::Refused(Fault::BeatUnregistered { task });
        }
        if record.incarnation != incarnation && !is_planted(Bug::SkippedIncarnation) {
            return if self.recoverable(task) {
                Beat::Tolerated(self.service)
            } else {
                Beat::Propose(Command::RefuseBeat { scope, task, incarnation })
            };
        }
        if record.phase() == Phase::Disconnected {
            return Beat::Tolerated(self.service);
        }
        // Where polls are released no poll may be there to tell the task, and where they are held, its
        // own may have been released.
        let deaf = match self.spec.poll {
            Poll::Release => !record.polls(),
            Poll::Hold => record.poll.is_some_and(|poll| poll.released),
        };
        match self.error_for(record) {
            Some(fault) if deaf => Beat::Refused(Fault::clone(fault)),
            _ => Beat::Recorded(self.service),
        }
    }
}

impl Turn<'_> {
    /// A beat of another life, if it still is one now that the command has its place in the log.
    pub(crate) fn refuse_beat(&mut self, scope: Scope, task: TaskId, incarnation: Incarnation) -> Reply {
        match self.job.beat(scope, task, incarnation, self.context.now_ms) {
            Beat::Recorded(service) | Beat::Tolerated(service) => Ok(Answer::Registered { service }),
            Beat::Refused(fault) => Err(fault),
            Beat::Propose(_) => {
                let expected = self.job.tasks.get(task).incarnation;
                let fault = Arc::new(Fault::BeatOfOtherLife { task, expected, got: incarnation });
                self.set_error(task, &fault);
                self.propagate(&fault, self.job.recoverable(task));
                Err(Fault::clone(&fault))
            }
        }
    }
}
