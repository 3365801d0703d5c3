//! The job of this agent: found, or created on first use.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{CreateJobRequest, GetJobRequest, Job, JobSpec};

use crate::upstream::Upstream;

/// How often a job that is missing is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What is known of the job.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    /// The cluster has not answered yet.
    Nothing,
    Settled {
        heartbeat_timeout: Duration,
    },
    /// There is none, or it cannot be created; clients get this answer.
    Missing {
        code: Code,
        text: String,
    },
}

/// The job as calls see it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AgentJob {
    known: Arc<watch::Sender<Known>>,
}

impl AgentJob {
    pub(crate) fn new() -> Self {
        Self { known: Arc::new(watch::Sender::new(Known::Nothing)) }
    }

    /// Waits until it is known whether there is a job, and gives its heartbeat timeout.
    ///
    /// # Errors
    /// The answer for clients of a missing job.
    pub(crate) async fn settled(&self) -> Result<Duration, Status> {
        let mut changes = self.known.subscribe();
        let known = changes.wait_for(|known| *known != Known::Nothing).await.expect("the sender is ours");
        match &*known {
            Known::Settled { heartbeat_timeout } => Ok(*heartbeat_timeout),
            Known::Missing { code, text } => Err(Status::new(*code, text.clone())),
            Known::Nothing => unreachable!("waited for"),
        }
    }

    /// Finds the job, or creates it if `spec` is given. Goes on until there is one.
    pub(crate) async fn settle(&self, upstream: &Upstream, name: &str, spec: Option<&JobSpec>) {
        loop {
            let found = match get(upstream, name).await {
                Err(missing) if missing.code() == Code::NotFound => match spec {
                    Some(spec) => create(upstream, name, spec).await,
                    None => Err(Status::not_found(format!(
                        "there is no job `{name}`; create it with `tripod job create {name} --tasks N`, \
                         or start the agent with --tasks N"
                    ))),
                },
                found => found,
            };
            match found {
                Ok(job) => return self.found(&job, spec),
                Err(refusal) => self.missing(name, &refusal),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn found(&self, job: &Job, wanted: Option<&JobSpec>) {
        let (tasks, heartbeat_timeout_ms) =
            job.spec.as_ref().map_or((0, 0), |spec| (spec.tasks, spec.heartbeat_timeout_ms));
        if let Some(wanted) = wanted
            && wanted.tasks != tasks
        {
            tracing::warn!(
                job = job.name,
                tasks,
                wanted = wanted.tasks,
                "the job exists with another number of tasks; `tripod job delete` it to create it anew"
            );
        }
        let heartbeat_timeout = Duration::from_millis(heartbeat_timeout_ms);
        tracing::info!(job = job.name, tasks, "job settled");
        self.known.send_replace(Known::Settled { heartbeat_timeout });
    }

    fn missing(&self, name: &str, refusal: &Status) {
        let missing = Known::Missing { code: refusal.code(), text: refusal.message().to_owned() };
        let news = self.known.send_if_modified(|known| {
            let news = *known != missing;
            *known = missing;
            news
        });
        if news {
            tracing::warn!(job = name, why = refusal.message(), "there is no job");
        }
    }
}

async fn get(upstream: &Upstream, name: &str) -> Result<Job, Status> {
    let ask = |channel: Channel| {
        let request = GetJobRequest { name: name.to_owned() };
        // A job's answer lists all its tasks.
        async move { JobsClient::new(channel).max_decoding_message_size(usize::MAX).get(request).await }
    };
    upstream.ask("job show", ask).await
}

/// Creates the job. It may be another agent that does: that is just as well.
async fn create(upstream: &Upstream, name: &str, spec: &JobSpec) -> Result<Job, Status> {
    let ask = |channel: Channel| {
        let request = CreateJobRequest { name: name.to_owned(), spec: Some(spec.to_owned()) };
        async move { JobsClient::new(channel).create(request).await }
    };
    match upstream.ask("job create", ask).await {
        Ok(job) => {
            tracing::info!(job = name, tasks = spec.tasks, "job created");
            Ok(job)
        }
        Err(exists) if exists.code() == Code::AlreadyExists => get(upstream, name).await,
        Err(refusal) => Err(refusal),
    }
}
