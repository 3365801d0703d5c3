//! Polls for errors.

use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault};
use crate::ids::{CallId, TaskId};
use crate::job;
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::task::record::Poll;
use crate::task::{Phase, Untold};
use crate::wait::Ticket;

impl Turn<'_> {
    /// Asks for errors. From the first time on, errors are told instead of forced on everybody.
    pub(crate) fn poll(&mut self, task: TaskId, wish: Option<job::Poll>) -> Reply {
        self.known(task, Asked::Poll)?;
        self.job.polls.asked = true;
        let record = self.job.tasks.get(task);
        if record.gone(self.context.now_ms) {
            return Err(Fault::PollUnregistered { task });
        }
        if let Some(existing) = record.error() {
            return Err(Fault::PollInError { task, existing: existing.cited() });
        }
        if let Some(fault) = self.job.error_for(record) {
            return Err(Fault::clone(fault));
        }
        let released = wish.unwrap_or(self.job.spec.poll) == job::Poll::Release;
        if released && wish.is_none() {
            return Err(Fault::PollReleased);
        }
        let call = self.call();
        let held = record.polls();
        self.job.tasks.edit(task).poll = Some(Poll { call, left: false, released });
        if held {
            self.polls_changed();
        }
        if released {
            return Err(Fault::PollReleased);
        }
        Ok(Answer::Waiting(Ticket::Poll { job: self.job.id, task, call }))
    }

    /// These tasks were told at their own addresses.
    pub(crate) fn pushed(&mut self, tasks: &[TaskId]) -> Reply {
        let known = tasks.iter().filter(|task| self.job.tasks.contains(**task));
        self.job.polls.pushed = known.fold(self.job.polls.pushed.clone(), |told, task| told.update(*task));
        Ok(Answer::Done)
    }

    /// The task left: its held poll ends. One that an error has answered stays as it was answered.
    pub(crate) fn end_poll(&mut self, task: TaskId) {
        let record = self.job.tasks.get(task);
        if self.job.error_for(record).is_none()
            && let Some(poll) = record.poll.filter(|_| record.polls())
        {
            self.job.tasks.edit(task).poll = Some(Poll { left: true, ..poll });
            self.polls_changed();
        }
    }
}

impl Job {
    /// The connected tasks that are still to be told of the job's error at their own addresses. The
    /// task that reported it knows, and tasks in error have heard of one.
    pub(crate) fn untold(&self) -> impl Iterator<Item = Untold> + '_ {
        let listeners = self.spec.listeners.iter().filter_map(|listener| {
            let record = self.tasks.get(listener.task);
            let deaf = record.phase() == Phase::Connected && !self.polls.pushed.contains(&listener.task);
            let error = self.error_for(record).filter(|_| deaf)?;
            Some((listener, error))
        });
        listeners.map(|(listener, error)| Untold {
            job: self.id,
            listener: listener.clone(),
            error: Fault::clone(error),
        })
    }

    /// How a held poll ended, or `None` while it is held.
    pub(crate) fn poll_outcome(&self, task: TaskId, call: CallId) -> Option<Fault> {
        match self.tasks.get(task).poll {
            Some(poll) if poll.call == call && poll.left => Some(Fault::PollerLeft),
            Some(poll) if poll.call == call => {
                self.error_for(self.tasks.get(task)).map(|fault| Fault::clone(fault))
            }
            _ => Some(Fault::PollReplaced),
        }
    }
}
