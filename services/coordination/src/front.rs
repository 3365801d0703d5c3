//! The way from a decoded call to the cluster and back, shared by both dialects.

use std::time::Duration;

use tonic::Status;
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_state::ids::{Incarnation, JobId, JobName, TaskId};
use tripod_state::{Answer, Command, Fault, Reply, Scope, State, Ticket, Topic};

use crate::dialect::Dialect;
use crate::status;

/// Which job the calls of a port belong to: no message of these protocols names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobBinding {
    /// The port is one job's own.
    Fixed(JobId),
    /// The port serves the job that has this name at the time of the call.
    Named(String),
}

/// How long a call waits for the job that its port is named after to be created.
const CREATION_PATIENCE: Duration = Duration::from_secs(2);

/// How much later than anything else that happened with it an error is told to polls. A client that
/// hears of it ends its process at once; upstream answers the barriers and the callers that ask who is
/// alive first, on the same connection, and their answers must not be lost here either. Long enough
/// that whoever was woken together has answered, and shorter than any next call would take.
const LAST_WORD: Duration = Duration::from_millis(2);

/// A gateway as one dialect of one port sees it.
#[derive(Clone)]
pub(crate) struct Front {
    gateway: Gateway,
    binding: JobBinding,
    dialect: Dialect,
}

impl Front {
    pub(crate) fn new(gateway: Gateway, binding: JobBinding, dialect: Dialect) -> Self {
        Self { gateway, binding, dialect }
    }

    /// The job that calls of this port are about.
    pub(crate) async fn job(&self) -> Result<JobId, Status> {
        match self.find_job().await {
            Ok(Ok(job)) => Ok(job),
            Ok(Err(fault)) => Err(self.refuse(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    /// Replicates a command and waits for its outcome.
    pub(crate) async fn call(&self, command: Command) -> Result<Answer, Status> {
        self.answer(self.gateway.call(command).await)
    }

    /// Polls for errors; there is no good outcome. Clients end their process on every answer to a
    /// poll but CANCELLED, which only ends the polling: so the cluster's own trouble is told as that.
    pub(crate) async fn poll(&self, command: impl FnOnce(JobId) -> Command + Send) -> Status {
        let reply = match self.find_job().await {
            Ok(Ok(job)) => self.gateway.call(command(job)).await,
            Ok(Err(fault)) => Ok(Err(fault)),
            Err(outage) => Err(outage),
        };
        tokio::time::sleep(LAST_WORD).await;
        match reply {
            Ok(Ok(answer)) => unexpected(&answer),
            Ok(Err(fault)) => self.refuse(&fault),
            Err(outage) => {
                tracing::debug!(%outage, "poll for errors released");
                Status::cancelled(format!("Cancelled error polling because: {outage}"))
            }
        }
    }

    /// Waits for something that no command began.
    pub(crate) async fn wait(&self, ticket: Ticket) -> Result<Answer, Status> {
        self.answer(self.gateway.wait(ticket).await)
    }

    pub(crate) async fn heartbeat(
        &self,
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
    ) -> Result<Answer, Status> {
        self.answer(self.gateway.heartbeat(scope, task, incarnation).await)
    }

    /// Looks at the state as of all writes acknowledged so far.
    pub(crate) async fn read<T>(
        &self,
        look: impl FnOnce(&State) -> Result<T, Fault> + Send,
    ) -> Result<T, Status>
    where
        T: Send,
    {
        match self.gateway.read(Consistency::Linearizable, look).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(fault)) => Err(self.refuse(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    async fn find_job(&self) -> Result<Result<JobId, Fault>, Outage> {
        let name = match &self.binding {
            JobBinding::Fixed(job) => return Ok(Ok(*job)),
            JobBinding::Named(name) => name,
        };
        let mut jobs = self.gateway.watch(Topic::Jobs);
        // A job that this node knows is found without asking the leader. One that it does not know
        // may have been created a moment ago through another node.
        for consistency in [Consistency::Local, Consistency::Linearizable] {
            if let Some(job) = self.gateway.read(consistency, |state| state.job_named(name)).await? {
                return Ok(Ok(job));
            }
        }
        // A new cluster's first leader is about to create it. A client that was faster must not be sent
        // away: to most clients that is final.
        let created = async {
            loop {
                jobs.changed().await;
                let known = self.gateway.read(Consistency::Local, |state| state.job_named(name)).await;
                if let Some(job) = known.transpose() {
                    return job;
                }
            }
        };
        match tokio::time::timeout(CREATION_PATIENCE, created).await {
            Ok(job) => job.map(Ok),
            Err(_) => Ok(Err(Fault::JobUnknown { name: Some(JobName::from(name.as_str())) })),
        }
    }

    fn answer(&self, reply: Result<Reply, Outage>) -> Result<Answer, Status> {
        match reply {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(fault)) => Err(self.refuse(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    fn refuse(&self, fault: &Fault) -> Status {
        status::of_fault(fault, self.dialect)
    }
}

/// An answer that the asked command never gives: a defect of ours, not the caller's.
pub(crate) fn unexpected(answer: &Answer) -> Status {
    tracing::error!(?answer, "unexpected answer from the state machine");
    Status::internal("unexpected answer from the state machine")
}
