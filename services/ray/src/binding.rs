//! Which job's scheduler a call is about: no message of 2016 names one.

use std::time::Duration;

use tonic::metadata::MetadataMap;
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_proto::metadata;
use tripod_state::ids::{JobId, JobName};
use tripod_state::{Fault, Topic};

/// How long a call waits for the job that it names to be created: a new cluster's first leader is about to make
/// the default one.
const CREATION_PATIENCE: Duration = Duration::from_secs(2);

/// Which job the calls of a port belong to, unless they name another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// The port is one job's own.
    Fixed(JobId),
    /// The port serves the job that has this name at the time of the call.
    Named(String),
}

impl Binding {
    /// The job that the caller names, else the port's own. The inner error is the refusal that names the
    /// missing job.
    pub(crate) async fn find(
        &self,
        gateway: &Gateway,
        metadata: &MetadataMap,
    ) -> Result<Result<JobId, Fault>, Outage> {
        let wanted = metadata.get(metadata::JOB).and_then(|name| name.to_str().ok());
        match (wanted, self) {
            (Some(name), _) => find_named(gateway, name).await,
            (None, Self::Fixed(job)) => Ok(Ok(*job)),
            (None, Self::Named(name)) => find_named(gateway, name).await,
        }
    }
}

/// A job that this node knows is found without asking the leader. One that it does not know may have been
/// created a moment ago through another node, or is about to be.
async fn find_named(gateway: &Gateway, name: &str) -> Result<Result<JobId, Fault>, Outage> {
    let mut jobs = gateway.watch(Topic::Jobs);
    for consistency in [Consistency::Local, Consistency::Linearizable] {
        if let Some(job) = gateway.read(consistency, |state| state.job_named(name)).await? {
            return Ok(Ok(job));
        }
    }
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
