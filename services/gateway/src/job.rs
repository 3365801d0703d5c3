//! Which job a call is about: most protocols of clients have no name for it.

use std::time::Duration;

use tripod_state::ids::{JobId, JobName};
use tripod_state::{Fault, Topic};

use crate::gateway::{Consistency, Gateway};
use crate::outage::Outage;

/// How long a call waits for its job to be created.
const CREATION_PATIENCE: Duration = Duration::from_secs(2);

/// Which job the calls of a port belong to, unless they name another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobBinding {
    /// The port is one job's own.
    Fixed(JobId),
    /// The port serves the job that has this name at the time of the call.
    Named(String),
}

impl JobBinding {
    /// The job that the caller wants; else the port's own; else the one that the host's first `label` names, by which the
    /// port was dialled; else the one whose name the port serves. The inner error is the refusal that names the missing job.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn find(
        &self,
        gateway: &Gateway,
        wanted: Option<&str>,
        label: Option<&str>,
    ) -> Result<Result<JobId, Fault>, Outage> {
        match (wanted, self) {
            (Some(name), _) => gateway.job_named(name).await,
            (None, Self::Fixed(job)) => Ok(Ok(*job)),
            (None, Self::Named(name)) => {
                // A host's first label may mean anything: it names a job only if there is one.
                if let Some(label) = label
                    && let Some(job) = gateway.known_job(label).await?
                {
                    return Ok(Ok(job));
                }
                gateway.job_named(name).await
            }
        }
    }
}

impl Gateway {
    /// The job of this name, if there is one. One that this node knows is found without asking the leader; one that it
    /// does not know may have been created a moment ago through another node.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn known_job(&self, name: &str) -> Result<Option<JobId>, Outage> {
        match self.job_named_here(name) {
            Some(job) => Ok(Some(job)),
            // Boxed, as it is seldom: every call looks for its job, and would be as large as this while it waits.
            None => Box::pin(self.read(Consistency::Linearizable, |state| state.job_named(name))).await,
        }
    }

    /// The job of this name, or the refusal that names it if nobody creates it soon.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn job_named(&self, name: &str) -> Result<Result<JobId, Fault>, Outage> {
        if let Some(job) = self.job_named_here(name) {
            return Ok(Ok(job));
        }
        Box::pin(self.created_job(name)).await
    }

    /// The job of this name that this node does not know yet, or the refusal that names it if nobody creates it soon.
    async fn created_job(&self, name: &str) -> Result<Result<JobId, Fault>, Outage> {
        let mut jobs = self.watch(Topic::Jobs);
        if let Some(job) = self.known_job(name).await? {
            return Ok(Ok(job));
        }
        // A new cluster's first leader is about to create the default one. A client that was faster must not be sent
        // away: to most clients that is final.
        let created = async {
            loop {
                jobs.changed().await;
                let known = self.read(Consistency::Local, |state| state.job_named(name)).await;
                if let Some(job) = known.transpose() {
                    return job;
                }
            }
        };
        match tokio::time::timeout(CREATION_PATIENCE, created).await {
            Ok(job) => job.map(Ok),
            Err(_) => Ok(Err(Fault::JobUnknown { name: Some(JobName::from(name)) })),
        }
    }
}
