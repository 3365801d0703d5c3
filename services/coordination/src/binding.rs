//! Which job a call is about: no message of these protocols names one.

use std::time::Duration;

use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_state::ids::{JobId, JobName};
use tripod_state::{Fault, Topic};

use crate::label::Label;

/// How long a call waits for the job that its port is named after to be created.
const CREATION_PATIENCE: Duration = Duration::from_secs(2);

/// Which job the calls of a port belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobBinding {
    /// The port is one job's own.
    Fixed(JobId),
    /// The port serves the job that has this name at the time of the call.
    Named(String),
}

impl JobBinding {
    /// The job, or the refusal that names the missing one: what the caller wants, else the port's own
    /// job, else a job that is named as the first label of the host that was dialled, else the job
    /// that the port is named after.
    pub(crate) async fn find(
        &self,
        gateway: &Gateway,
        wanted: Option<&str>,
        label: Option<&Label>,
    ) -> Result<Result<JobId, Fault>, Outage> {
        match (wanted, self) {
            (Some(name), _) => find_named(gateway, name).await,
            (None, Self::Fixed(job)) => Ok(Ok(*job)),
            (None, Self::Named(name)) => {
                if let Some(Label(label)) = label
                    && let Some(job) = find_known(gateway, label).await?
                {
                    return Ok(Ok(job));
                }
                find_named(gateway, name).await
            }
        }
    }
}

/// A job that this node knows is found without asking the leader. One that it does not know may have
/// been created a moment ago through another node.
async fn find_known(gateway: &Gateway, name: &str) -> Result<Option<JobId>, Outage> {
    for consistency in [Consistency::Local, Consistency::Linearizable] {
        if let Some(job) = gateway.read(consistency, |state| state.job_named(name)).await? {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

async fn find_named(gateway: &Gateway, name: &str) -> Result<Result<JobId, Fault>, Outage> {
    let mut jobs = gateway.watch(Topic::Jobs);
    if let Some(job) = find_known(gateway, name).await? {
        return Ok(Ok(job));
    }
    // A new cluster's first leader is about to create it. A client that was faster must not be sent
    // away: to most clients that is final.
    let created = async {
        loop {
            jobs.changed().await;
            let known = gateway.read(Consistency::Local, |state| state.job_named(name)).await;
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
