//! Calls to whichever node answers.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tripod_backoff::Backoff;
use tripod_client::Nodes;
use tripod_dial::Shown;
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
            let shown = Shown::now();
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
                Ok(Err(status)) if is_answer(&status, &shown) => {
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
/// be answered; so is a token that has run out, in whose place there is another one.
fn is_answer(status: &Status, shown: &Shown) -> bool {
    let is_outdated = status.code() == Code::Unauthenticated && shown.is_replaced();
    let is_word = matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated
    );
    is_word && !is_outdated
}

#[cfg(test)]
mod tests {
    use tonic::codegen::http::HeaderValue;

    use super::*;

    #[test]
    fn s26_a_refusal_by_a_token_that_was_replaced_is_no_answer() {
        let refused = Status::unauthenticated("T1532 token-refused: x");
        let before = Shown::from(HeaderValue::from_static("Bearer trp_store_x"));
        assert!(is_answer(&refused, &Shown::now()), "there is no other one");
        assert!(!is_answer(&refused, &before));
        assert!(
            is_answer(&Status::not_found("x"), &before) && !is_answer(&Status::unavailable("x"), &before)
        );
    }
}
