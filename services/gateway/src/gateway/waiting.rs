//! Calls that may wait for what others do, in two stages: the command is submitted, and then its ticket is waited for.
//!
//! A gang that meets has a call waiting for each of its tasks, on all nodes together. What a call needs until its command has a
//! reply is several times as large as what it needs then, so that is in a box of its own, which is gone when the wait begins.

use std::pin::Pin;

use tripod_raft::Applied;
use tripod_state::ids::TaskId;
use tripod_state::{Answer, Command, Envelope, Fault, Reply, Stamp, Ticket};

use super::Gateway;
use crate::open_calls;
use crate::outage::Outage;

/// A command until it has a reply.
type Submitted<'a> = Pin<Box<dyn Future<Output = Result<Applied, Outage>> + Send + 'a>>;

/// By what a call is remembered: the task that makes it, if only the command says so, and its ticket if it waited.
type Remembered = (Option<TaskId>, Option<Ticket>);

impl Gateway {
    /// [`Self::submit`], and if the reply is a ticket, waits for its outcome. Dropping the future
    /// drops the wait, never the arrival.
    ///
    /// # Errors
    /// [`Outage`].
    pub fn call(&self, command: Command) -> impl Future<Output = Result<Reply, Outage>> + Send {
        self.call_as(None, command)
    }

    /// [`Self::call`] for a caller that may have a stamp of its own, by which its command is then submitted: see
    /// [`Self::submit_stamped`]. Every attempt with the same stamp waits for the same outcome, on any node.
    ///
    /// # Errors
    /// [`Outage`].
    pub fn call_as(
        &self,
        stamp: Option<Stamp>,
        command: Command,
    ) -> impl Future<Output = Result<Reply, Outage>> + Send {
        let remembered = (open_calls::asker(&command), open_calls::meeting(&command));
        let submitted: Submitted<'_> = match stamp {
            None => Box::pin(self.submitter.submit(command)),
            Some(_) => Box::pin(self.submitter.submit_stamped(Envelope { stamp, command })),
        };
        self.outcome(submitted, remembered)
    }

    async fn outcome(&self, submitted: Submitted<'_>, (asker, meeting): Remembered) -> Result<Reply, Outage> {
        let Applied { index, reply } = submitted.await?;
        let Ok(Answer::Waiting(ticket)) = reply else {
            // Whoever comes last gets no ticket, and has met the others nevertheless.
            if let (Ok(_), Some(ticket)) = (&reply, meeting) {
                self.met(&ticket, asker);
            }
            return Ok(reply);
        };
        drop(meeting);
        // The leader may have replied before this node has applied the command: until then its state
        // knows nothing of the arrival.
        self.backend.wait_applied(index).await.map_err(|_| Outage::Stopping)?;
        self.resolve(&ticket, asker).await
    }

    /// Waits for a ticket that no command issued (a key, a change of tasks), from a linearizable
    /// point on.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn wait(&self, ticket: Ticket) -> Result<Reply, Outage> {
        self.wait_as(ticket, None).await
    }

    /// [`Self::wait`] of the task `asker`, where the ticket does not say whose it is: for people who look who waits.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn wait_as(&self, ticket: Ticket, asker: Option<TaskId>) -> Result<Reply, Outage> {
        // Boxed, as a command's submitting: who asks the leader takes more than who waits.
        Box::pin(self.barrier()).await?;
        self.resolve(&ticket, asker).await
    }

    /// Waits for a ticket of whose beginning this node's state knows.
    async fn resolve(&self, ticket: &Ticket, asker: Option<TaskId>) -> Result<Reply, Outage> {
        if let Some(reply) = self.look(|state| state.resolve(ticket)) {
            if reply.is_ok() && open_calls::is_meeting(ticket) {
                self.met(ticket, asker);
            }
            return Ok(reply);
        }
        let _waiting = self.calls.enter()?;
        let entered = self.open_calls.enter(ticket, self.known(ticket, asker));
        let mut watch = self.hub.watch(ticket.topic());
        loop {
            if let Some(reply) = self.look(|state| state.resolve(ticket)) {
                if let Some(entered) = entered {
                    entered.answered(reply.is_ok());
                }
                // It may have been entered just after its job was deleted.
                if matches!(reply, Err(Fault::JobUnknown { .. })) {
                    self.open_calls.forget(ticket.job());
                }
                return Ok(reply);
            }
            watch.changed().await;
        }
    }

    /// Remembers that a command by which the task `asker` would have waited for others was answered at once: it was the last
    /// one. `meeting`: as [`crate::meeting`] has it.
    pub fn met_at_once(&self, meeting: Option<Ticket>, reply: &Reply, asker: Option<TaskId>) {
        let (Some(ticket), Ok(answer)) = (meeting, reply) else { return };
        if !matches!(answer, Answer::Waiting(_)) {
            self.met(&ticket, asker);
        }
    }

    /// The asker, if the job has such a task: a caller names itself as it likes.
    fn known(&self, ticket: &Ticket, asker: Option<TaskId>) -> Option<TaskId> {
        let tasks = self.look(|state| state.tasks_of(ticket.job()));
        asker.filter(|task| u32::try_from(task.0).is_ok_and(|task| task < tasks))
    }

    /// Remembers a call by which a task met others, and which has not waited.
    fn met(&self, ticket: &Ticket, asker: Option<TaskId>) {
        if let Some(entered) = self.open_calls.enter(ticket, self.known(ticket, asker)) {
            entered.answered(true);
        }
        // It may have been entered just after its job was deleted.
        if self.look(|state| state.job_name(ticket.job()).is_none()) {
            self.open_calls.forget(ticket.job());
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{JobId, ServiceIncarnation};
    use tripod_state::runtime::Wait;
    use tripod_state::{Scope, job, session};

    use super::*;

    /// What a call may take itself: it is one of as many as there are tasks.
    const CALL_BYTES_MAX: usize = 1 << 10;

    #[tokio::test]
    async fn what_a_call_is_submitted_with_is_no_part_of_it_while_it_waits() {
        let (gateway, _backend) = Gateway::in_memory();
        let call = gateway.call(Command::Session(session::Command::Open));
        let bytes = size_of_val(&call);
        assert!(bytes <= CALL_BYTES_MAX, "a call takes {bytes} bytes");
        let scope = Scope { job: JobId(1), service: None };
        let bytes = size_of_val(&gateway.wait(Ticket::Key { scope, asked: "key".to_owned() }));
        assert!(bytes <= CALL_BYTES_MAX, "a wait takes {bytes} bytes");
    }

    #[tokio::test]
    async fn a_call_that_need_not_wait_is_remembered_of_tasks_that_there_are() {
        let (gateway, backend) = Gateway::in_memory();
        let (spec, service) = (job::Spec::of_tasks(2), ServiceIncarnation(9));
        let create = job::Command::Create { name: "w".into(), spec, service };
        gateway.submit(Command::Job(create)).await.expect("no outage").expect("it is made");
        let job = backend.state().job_named("w").expect("it was made");
        let ticket = || Ticket::Runtime { job, wait: Wait::Shutdown };
        for task in [-1, 1, 2] {
            gateway.met_at_once(Some(ticket()), &Ok(Answer::Done), Some(TaskId(task)));
        }
        gateway.met_at_once(Some(ticket()), &Ok(Answer::Waiting(ticket())), Some(TaskId(0)));
        let known: Vec<TaskId> = gateway.open_calls.of(job).tasks.into_keys().collect();
        assert_eq!(known, [TaskId(1)], "a caller names itself as it likes");
    }
}
