//! A job of its own for each run: nothing of the user's is touched, and nothing is left behind.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{CreateJobRequest, DeleteJobRequest, GetJobRequest, Job, JobSpec};

use crate::connect;

/// How long the answer to a call may take; calls are held while there is no leader.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// How long nodes that have just started may take to announce their addresses.
const ANNOUNCE_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks for them.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Silence after which a task of the job counts as dead. Long: the machine may be busy with the load.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// A job that lives as long as one run.
#[derive(Debug, Clone)]
pub struct BenchJob {
    pub name: String,
    /// The job's own address on each node, by node id.
    pub addresses: BTreeMap<u64, String>,
    endpoints: Vec<String>,
}

impl BenchJob {
    /// Creates a job of `tasks` tasks under a name that nobody has.
    ///
    /// # Errors
    /// No endpoint accepts it; the last one's reason.
    pub async fn create(endpoints: &[String], tasks: usize) -> anyhow::Result<Self> {
        let name = format!("bench-{:016x}", rand::random::<u64>());
        let spec = JobSpec {
            tasks: u32::try_from(tasks).context("too many tasks for a job")?,
            heartbeat_timeout_ms: u64::try_from(HEARTBEAT_TIMEOUT.as_millis()).unwrap_or(u64::MAX),
            ..JobSpec::default()
        };
        let request = CreateJobRequest { name: name.clone(), spec: Some(spec) };
        let created = at_any(endpoints, |mut jobs| {
            let request = request.clone();
            async move { jobs.create(request).await }
        });
        let created = created.await.context("cannot create a job for this run")?;
        let mut job = Self { name, addresses: addresses_of(created), endpoints: endpoints.to_vec() };
        let deadline = Instant::now() + ANNOUNCE_PATIENCE;
        while job.addresses.len() < endpoints.len() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_PAUSE).await;
            job.addresses = job.look().await?;
        }
        Ok(job)
    }

    /// The addresses, in the order of node ids.
    #[must_use]
    pub fn all_addresses(&self) -> Vec<String> {
        self.addresses.values().cloned().collect()
    }

    /// Deletes the job with all its tasks and keys.
    ///
    /// # Errors
    /// No endpoint did it.
    pub async fn delete(self) -> anyhow::Result<()> {
        let name = self.name.clone();
        let deleted = at_any(&self.endpoints, |mut jobs| {
            let request = DeleteJobRequest { name: name.clone() };
            async move { jobs.delete(request).await }
        });
        deleted
            .await
            .with_context(|| format!("cannot delete job {name}; `tripod job delete {name}` does"))?;
        Ok(())
    }

    async fn look(&self) -> anyhow::Result<BTreeMap<u64, String>> {
        let found = at_any(&self.endpoints, |mut jobs| {
            let request = GetJobRequest { name: self.name.clone(), ..Default::default() };
            async move { jobs.get(request).await }
        });
        Ok(addresses_of(found.await.context("cannot look at the job of this run")?))
    }
}

fn addresses_of(job: Job) -> BTreeMap<u64, String> {
    job.addresses.into_iter().map(|address| (address.node_id, address.address)).collect()
}

/// Tries the endpoints in turn.
async fn at_any<T, F>(
    endpoints: &[String],
    call: impl Fn(JobsClient<tonic::transport::Channel>) -> F,
) -> anyhow::Result<T>
where
    F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
{
    let mut last = anyhow::anyhow!("no endpoints given");
    for address in endpoints {
        let jobs = JobsClient::new(connect::lazy(address)?);
        match tokio::time::timeout(CALL_TIMEOUT, call(jobs)).await {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(status)) => last = anyhow::anyhow!("{address}: {:?}: {}", status.code(), status.message()),
            Err(_) => last = anyhow::anyhow!("{address}: no answer within {CALL_TIMEOUT:?}"),
        }
    }
    Err(last)
}
