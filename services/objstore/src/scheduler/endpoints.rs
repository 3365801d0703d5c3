//! Calls to whichever node answers.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tripod_backoff::Backoff;
use tripod_client::Nodes;
use tripod_proto::metadata::{JOB, RAY_REASON};

use crate::config::Config;
use crate::error::Error;

/// Rest after no node answered.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(25), Duration::from_secs(1));

/// The nodes of a cluster, asked until one of them answers. A store has nobody to give up to, and takes for the
/// scheduler's word only what cannot be trouble on the way: what it takes for a refusal, it deletes.
#[derive(Debug)]
pub(crate) struct Endpoints {
    nodes: Nodes,
    job: Option<MetadataValue<Ascii>>,
    attempt: Duration,
}

/// A node's definite no, and which node it was.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) endpoint: String,
    pub(crate) status: Status,
}

impl Refused {
    /// The scheduler's word for the reason; empty if it gave none.
    pub(crate) fn reason(&self) -> &str {
        self.status.metadata().get(RAY_REASON).and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

impl Endpoints {
    /// # Errors
    /// [`Error::Config`] names the address that is none.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let nodes = Nodes::new(&config.endpoints).map_err(|error| Error::Config(error.to_string()))?;
        Ok(Self { nodes, job: config.job_header()?, attempt: config.attempt })
    }

    /// Where the nodes are that it was told of.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &str> {
        (0..self.nodes.count()).map(|place| self.nodes.address(place))
    }

    /// The name of the job that calls are about; empty: the port's own.
    pub(crate) fn job(&self) -> &str {
        self.job.as_ref().and_then(|job| job.to_str().ok()).unwrap_or_default()
    }

    /// Sends a call to one node after the other until one answers, yes or no. Only for calls that may be sent more
    /// than once. Goes on for ever: who has no use for the answer any more drops it.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) async fn call<Q, R, F, Fut>(
        &self,
        what: &'static str,
        request: impl Fn() -> Request<Q>,
        send: F,
    ) -> Result<R, Refused>
    where
        F: Fn(Channel, Request<Q>) -> Fut,
        Fut: Future<Output = Result<Response<R>, Status>>,
    {
        let mut backoff = BACKOFF;
        let mut failed = 0_usize;
        loop {
            let place = self.nodes.preferred();
            let endpoint = self.nodes.address(place);
            let mut request = request();
            if let Some(job) = &self.job {
                request.metadata_mut().insert(JOB, job.clone());
            }
            tripod_dial::show(&mut request);
            let sent = async {
                let channel = self.nodes.channel(place).await;
                send(channel.map_err(|attempt| Status::unavailable(attempt.cause))?, request).await
            };
            match timeout(self.attempt, sent).await {
                Ok(Ok(response)) => {
                    self.nodes.answered(place, &response);
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) if is_answer(&status) => {
                    return Err(Refused { endpoint: endpoint.to_owned(), status });
                }
                Ok(Err(status)) => {
                    tracing::debug!(what, endpoint, %status, "a node did not answer");
                }
                Err(_) => tracing::debug!(what, endpoint, "a node did not answer in time"),
            }
            self.nodes.left(place);
            failed += 1;
            if failed.is_multiple_of(self.nodes.count()) {
                backoff.rest().await;
            }
        }
    }
}

/// Whether a status is the scheduler's word. The others are trouble on the way or in a node, and another attempt may
/// be answered.
fn is_answer(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated
    )
}
