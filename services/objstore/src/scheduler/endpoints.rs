//! Calls to whichever node answers.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tripod_proto::metadata::{JOB, RAY_LEADER, RAY_REASON};

use crate::config::Config;
use crate::error::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Rest after no node answered; doubled until the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Node {
    address: String,
    target: Endpoint,
    channel: Mutex<Option<Channel>>,
}

/// The nodes of a cluster, and which of them answered last.
#[derive(Debug)]
pub(crate) struct Endpoints {
    nodes: Vec<Node>,
    preferred: AtomicUsize,
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
        let node = |address: &String| {
            let bad = || Error::Config(format!("endpoint `{address}` is no address; write it as HOST:PORT"));
            if address
                .rsplit_once(':')
                .is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err())
            {
                return Err(bad());
            }
            let target = Endpoint::from_shared(format!("http://{address}")).map_err(|_| bad())?;
            let target = target.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true);
            Ok(Node { address: address.clone(), target, channel: Mutex::default() })
        };
        let nodes = config.endpoints.iter().map(node).collect::<Result<_, _>>()?;
        Ok(Self { nodes, preferred: AtomicUsize::new(0), job: config.job_header()?, attempt: config.attempt })
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
        let mut pause = PAUSE_MIN;
        let mut failed = 0_usize;
        loop {
            let place = self.preferred.load(Ordering::Relaxed) % self.nodes.len();
            let node = &self.nodes[place];
            let mut request = request();
            if let Some(job) = &self.job {
                request.metadata_mut().insert(JOB, job.clone());
            }
            match timeout(self.attempt, node.send(request, &send)).await {
                Ok(Ok(response)) => {
                    if let Some(leader) = self.leader(&response) {
                        self.preferred.store(leader, Ordering::Relaxed);
                    }
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) if is_answer(&status) => {
                    return Err(Refused { endpoint: node.address.clone(), status });
                }
                Ok(Err(status)) => {
                    tracing::debug!(what, endpoint = node.address, %status, "a node did not answer");
                }
                Err(_) => tracing::debug!(what, endpoint = node.address, "a node did not answer in time"),
            }
            *node.channel.lock() = None;
            // Another call may have moved on already.
            let next = (place + 1) % self.nodes.len();
            _ = self.preferred.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
            failed += 1;
            if failed.is_multiple_of(self.nodes.len()) {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

impl Endpoints {
    /// The place of the leader, if the answer names it and it is one of the nodes that this store knows.
    fn leader<R>(&self, response: &Response<R>) -> Option<usize> {
        let told = response.metadata().get(RAY_LEADER)?.to_str().ok()?;
        self.nodes.iter().position(|node| node.address == told)
    }
}

impl Node {
    async fn send<Q, R, F, Fut>(&self, request: Request<Q>, send: &F) -> Result<Response<R>, Status>
    where
        F: Fn(Channel, Request<Q>) -> Fut,
        Fut: Future<Output = Result<Response<R>, Status>>,
    {
        let kept = self.channel.lock().clone();
        let channel = match kept {
            Some(channel) => channel,
            None => {
                let made = self.target.connect().await;
                let made = made.map_err(|error| Status::unavailable(crate::peers::root_cause(&error)))?;
                *self.channel.lock() = Some(made.clone());
                made
            }
        };
        send(channel, request).await
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
