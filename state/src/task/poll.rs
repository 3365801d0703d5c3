//! Polls for errors.

use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault};
use crate::ids::{CallId, TaskId};
use crate::job;
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::task::record::Poll;
use crate::wait::Ticket;

impl Turn<'_> {
    /// Asks for errors. From the first time on, errors are told instead of forced on everybody.
    pub(crate) fn poll(&mut self, task: TaskId) -> Reply {
        self.known(task, Asked::Poll)?;
        self.job.polls.asked = true;
        let record = self.job.tasks.get(task);
        if record.gone(self.context.now_ms) {
            return Err(Fault::PollUnregistered { task });
        }
        if let Some(existing) = record.error() {
            return Err(Fault::PollInError { task, existing: existing.cited() });
        }
        if let Some(fault) = &self.job.polls.latched {
            return Err(Fault::clone(fault));
        }
        if self.job.spec.poll == job::Poll::Release {
            return Err(Fault::PollReleased);
        }
        let call = self.call();
        let earlier = self.job.tasks.edit(task).poll.replace(Poll { call, left: false });
        if earlier.is_some_and(|poll| !poll.left) {
            self.polls_changed();
        }
        Ok(Answer::Waiting(Ticket::Poll { job: self.job.id, task, call }))
    }

    /// The task left: its held poll ends. One that an error has answered stays as it was answered.
    pub(crate) fn end_poll(&mut self, task: TaskId) {
        if self.job.polls.latched.is_none()
            && let Some(poll) = &mut self.job.tasks.edit(task).poll
            && !poll.left
        {
            poll.left = true;
            self.polls_changed();
        }
    }
}

impl Job {
    /// How a held poll ended, or `None` while it is held.
    pub(crate) fn poll_outcome(&self, task: TaskId, call: CallId) -> Option<Fault> {
        match self.tasks.get(task).poll {
            Some(poll) if poll.call == call && poll.left => Some(Fault::PollerLeft),
            Some(poll) if poll.call == call => self.polls.latched.as_deref().cloned(),
            _ => Some(Fault::PollReplaced),
        }
    }
}
