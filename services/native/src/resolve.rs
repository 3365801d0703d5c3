//! From job names to job ids.

use tonic::Status;
use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::{JobId, JobName};
use tripod_state::{Fault, Scope, State};

use crate::status;

/// The job that an empty name means.
pub(crate) const DEFAULT_JOB: &str = "default";

/// How sure the name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// This node's memory, and the cluster only when the name is not there: saves a round trip a write.
    LocalFirst,
    Linearizable,
}

/// The id of the job of that name.
pub(crate) async fn job(gateway: &Gateway, name: &str, freshness: Freshness) -> Result<JobId, Status> {
    if freshness == Freshness::LocalFirst
        && let Some(id) = gateway.job_named_here(if name.is_empty() { DEFAULT_JOB } else { name })
    {
        return Ok(id);
    }
    // A new cluster's first leader is about to create this one. Reads do not wait for it: agents ask by them whether
    // a node serves.
    let found = if name.is_empty() || name == DEFAULT_JOB {
        gateway.job_named(DEFAULT_JOB).await
    } else {
        gateway.read(Consistency::Linearizable, |state| in_state(state, name)).await
    };
    found.map_err(|outage| status::of_outage(&outage))?.map_err(|fault| status::of_fault(&fault))
}

/// The id of the job of that name in one state.
pub(crate) fn in_state(state: &State, name: &str) -> Result<JobId, Fault> {
    let name = if name.is_empty() { DEFAULT_JOB } else { name };
    state.job_named(name).ok_or_else(|| unknown(name))
}

/// That there is no such job.
pub(crate) fn unknown(name: &str) -> Fault {
    Fault::JobUnknown { name: Some(JobName::from(name)) }
}

/// Our own API carries no service incarnation.
pub(crate) fn scope(job: JobId) -> Scope {
    Scope { job, service: None }
}
