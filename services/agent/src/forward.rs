//! A client's call, sent to the cluster until it is answered.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::Status;
use tripod_proto::metadata;

use crate::calls::Repeat;
use crate::config::Poll;
use crate::lanes::{Flight, Lanes};
use crate::message::{Message, Reply};
use crate::upstream::{Doubt, Link, Upstream};

/// How long the cluster may take to release a poll. Without a leader it cannot.
const RELEASE_LIMIT: Duration = Duration::from_millis(500);

/// Passes calls on. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Forwarder {
    upstream: Upstream,
    lanes: Arc<Lanes>,
    /// What every call says besides what its client says.
    ours: HeaderMap,
}

/// The session of a call is not known any more.
struct SessionGone {
    /// No attempt was executed.
    is_certain: bool,
}

/// Why an attempt brought no answer.
enum Unanswered {
    SessionGone,
    /// There is another link now.
    Left,
    /// `was_sent`: it may have been executed.
    Failed {
        doubt: Doubt,
        was_sent: bool,
    },
}

impl Forwarder {
    pub(crate) fn new(upstream: Upstream, lanes: Arc<Lanes>, job: &str, poll: Poll) -> Self {
        let mut ours = HeaderMap::new();
        let job = HeaderValue::from_str(job).expect("the configuration was checked");
        ours.insert(HeaderName::from_static(metadata::JOB), job);
        if poll == Poll::Hold {
            ours.insert(HeaderName::from_static(metadata::LASTING), HeaderValue::from_static("1"));
        }
        Self { upstream, lanes, ours }
    }

    /// Sends until the cluster has answered. Dropping the future gives the call up.
    ///
    /// # Errors
    /// The answer of the agent itself: no session can be opened, or it cannot be told any more whether
    /// the call was executed, or there has been no cluster for too long.
    pub(crate) async fn call(&self, message: &Message, repeat: Repeat) -> Result<Reply, Status> {
        if let Some(given_up) = self.upstream.is_given_up() {
            return Err(given_up);
        }
        tokio::select! {
            biased;
            answer = self.send(message, repeat) => answer,
            given_up = self.upstream.given_up() => Err(given_up),
        }
    }

    /// Has the cluster release a poll, whose task then hears of errors by its heartbeats: CANCELLED, or the
    /// error that there is. `None` if it does not do so in time.
    pub(crate) async fn release(&self, poll: &Message) -> Option<Reply> {
        let link = self.upstream.current()?;
        let mut ours = self.ours.clone();
        ours.remove(metadata::LASTING);
        let last = poll.for_the_last_time();
        let released = tokio::time::timeout(RELEASE_LIMIT, link.send(&last, &ours, None)).await;
        released.ok()?.ok().filter(|reply| reply.outage().is_none())
    }

    async fn send(&self, message: &Message, repeat: Repeat) -> Result<Reply, Status> {
        loop {
            let flight = match repeat {
                Repeat::Free => None,
                Repeat::Stamped | Repeat::Recognised => Some(self.lanes.take().await?),
            };
            let SessionGone { is_certain } = match self.attempts(message, flight.as_ref()).await {
                Ok(reply) => return Ok(reply),
                Err(gone) => gone,
            };
            if let Some(flight) = flight {
                flight.lost();
            }
            if !is_certain && repeat != Repeat::Recognised {
                return Err(Status::unavailable(format!(
                    "outcome unknown: the session of this call expired while {} was under way; look whether \
                     it took effect before sending it again",
                    message.path
                )));
            }
        }
    }

    /// Attempts with one stamp.
    async fn attempts(&self, message: &Message, flight: Option<&Flight>) -> Result<Reply, SessionGone> {
        let stamp = flight.map(|flight| flight.stamp().header());
        let mut is_certain = true;
        let mut pause = self.upstream.timing().pause_min;
        loop {
            let link = self.upstream.link().await;
            let attempt = tokio::select! {
                // An answer that is here counts, even if the link is left at the same moment.
                biased;
                attempt = self.attempt(&link, message, stamp.clone()) => attempt,
                () = self.upstream.left(&link) => Err(Unanswered::Left),
            };
            match attempt {
                Ok(reply) => return Ok(reply),
                Err(Unanswered::SessionGone) => return Err(SessionGone { is_certain }),
                Err(Unanswered::Left) => is_certain = false,
                Err(Unanswered::Failed { doubt, was_sent }) => {
                    is_certain &= !was_sent;
                    self.upstream.doubt(&link, doubt);
                    self.upstream.pause(&link, &mut pause).await;
                }
            }
        }
    }

    async fn attempt(
        &self,
        link: &Link,
        message: &Message,
        stamp: Option<HeaderValue>,
    ) -> Result<Reply, Unanswered> {
        let reply = match link.send(message, &self.ours, stamp).await {
            Ok(reply) => reply,
            Err(broken) => {
                tracing::debug!(path = message.path, address = link.address, %broken, "call not answered");
                return Err(Unanswered::Failed { doubt: Doubt::Failed, was_sent: true });
            }
        };
        let Some(outage) = reply.outage() else {
            self.upstream.heard();
            return Ok(reply);
        };
        tracing::debug!(
            path = message.path,
            address = link.address,
            outage,
            why = reply.text(),
            "call put off"
        );
        Err(match outage {
            metadata::OUTAGE_SESSION => Unanswered::SessionGone,
            metadata::OUTAGE_NO_LEADER => Unanswered::Failed { doubt: Doubt::NoLeader, was_sent: false },
            metadata::OUTAGE_STOPPING => Unanswered::Failed { doubt: Doubt::Stopping, was_sent: false },
            metadata::OUTAGE_OVERLOADED => Unanswered::Failed { doubt: Doubt::Failed, was_sent: false },
            // Of a word that is not known here the worst is assumed, as of `unknown`.
            _ => Unanswered::Failed { doubt: Doubt::Failed, was_sent: true },
        })
    }
}
