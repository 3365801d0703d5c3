//! The job of this agent: found, or created on first use.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tonic::{Code, Status};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{CreateJobRequest, GetJobRequest, Job, JobSpec};

use crate::upstream::{Upstream, Wire};

/// How often a job that is missing, or is another one than is meant, is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What is known of the job.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    /// The cluster has not answered yet.
    Nothing,
    Settled {
        heartbeat_timeout: Duration,
    },
    /// The job of that name has another number of tasks than was said.
    Another {
        text: String,
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
    /// The answer for clients of a job that is missing, or is not the one that is meant.
    pub(crate) async fn settled(&self) -> Result<Duration, Status> {
        let mut changes = self.known.subscribe();
        let known = changes.wait_for(|known| *known != Known::Nothing).await.expect("the sender is ours");
        match &*known {
            Known::Settled { heartbeat_timeout } => Ok(*heartbeat_timeout),
            Known::Another { text } => Err(Status::failed_precondition(text.clone())),
            Known::Missing { code, text } => Err(Status::new(*code, text.clone())),
            Known::Nothing => unreachable!("waited for"),
        }
    }

    /// Waits until it is known that the job is not the one that is meant, and says how.
    pub(crate) async fn is_another(&self) -> String {
        let mut changes = self.known.subscribe();
        let another = |known: &Known| matches!(known, Known::Another { .. });
        match &*changes.wait_for(another).await.expect("the sender is ours") {
            Known::Another { text } => text.clone(),
            _ => unreachable!("waited for"),
        }
    }

    /// Finds the job, or creates it if `spec` is given. Goes on until there is the one that is meant.
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
            match found.map(|job| Known::of(&job, spec)) {
                Ok(Known::Another { text }) => {
                    if self.learn(Known::Another { text: text.clone() }) {
                        tracing::error!(job = name, why = text, "the job is not the one that is meant");
                    }
                }
                Ok(settled) => {
                    self.learn(settled);
                    tracing::info!(job = name, "job settled");
                    return;
                }
                Err(refusal) => {
                    let text = refusal.message().to_owned();
                    if self.learn(Known::Missing { code: refusal.code(), text: text.clone() }) {
                        tracing::warn!(job = name, why = text, "there is no job");
                    }
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether this is news.
    fn learn(&self, now: Known) -> bool {
        self.known.send_if_modified(|known| {
            let is_news = *known != now;
            *known = now;
            is_news
        })
    }
}

impl Known {
    /// What a job that exists is to clients which expect `wanted`.
    fn of(job: &Job, wanted: Option<&JobSpec>) -> Self {
        let name = &job.name;
        let (tasks, heartbeat_timeout_ms) =
            job.spec.as_ref().map_or((0, 0), |spec| (spec.tasks, spec.heartbeat_timeout_ms));
        match wanted {
            Some(wanted) if wanted.tasks != tasks => Self::Another {
                text: format!(
                    "job `{name}` has {tasks} {}, not {} as --tasks says; look at it with `tripod job show \
                     {name}`, then leave --tasks out to use it as it is, choose another --job, or, if nobody \
                     needs it any more, `tripod job delete {name}`",
                    if tasks == 1 { "task" } else { "tasks" },
                    wanted.tasks
                ),
            },
            _ => Self::Settled { heartbeat_timeout: Duration::from_millis(heartbeat_timeout_ms) },
        }
    }
}

async fn get(upstream: &Upstream, name: &str) -> Result<Job, Status> {
    let ask = |wire: Wire| {
        let request = GetJobRequest { name: name.to_owned(), ..Default::default() };
        // A job's answer lists all its tasks.
        async move { JobsClient::new(wire).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX).get(request).await }
    };
    upstream.ask("job show", ask).await
}

/// Creates the job. It may be another agent that does: that is just as well.
async fn create(upstream: &Upstream, name: &str, spec: &JobSpec) -> Result<Job, Status> {
    let ask = |wire: Wire| {
        let request = CreateJobRequest { name: name.to_owned(), spec: Some(spec.to_owned()) };
        async move { JobsClient::new(wire).create(request).await }
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
