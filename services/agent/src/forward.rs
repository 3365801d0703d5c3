//! A client's call, sent to the cluster until it is answered.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::Status;
use tripod_port::{CallerConnection, Short};
use tripod_proto::metadata;

use crate::answer_bytes::{AnswerBytes, NoRoom, refusal};
use crate::calls::{Call, Repeat};
use crate::config::Poll;
use crate::message::{Incomplete, Message, Reply};
use crate::sessions::{Flight, Pace, Sessions};
use crate::upstream::{Doubt, Link, Upstream};

/// How long the cluster may take to release a poll. Without a leader it cannot.
const RELEASE_LIMIT: Duration = Duration::from_millis(500);

/// Passes calls on. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Forwarder {
    upstream: Upstream,
    sessions: Arc<Sessions>,
    /// What every call says besides what its client says. Each call has a clone of its forwarder.
    ours: Arc<HeaderMap>,
}

/// Why the attempts with one stamp brought no answer.
enum Unfinished {
    /// The session of the call is not known any more. `is_certain`: no attempt was executed.
    SessionGone { is_certain: bool },
    /// There is no room for its answer.
    Short(Short),
}

/// Why an attempt brought no answer.
enum Unanswered {
    SessionGone,
    /// There is another link now.
    Left,
    /// The node has answered, and there was no room.
    NoRoom(NoRoom),
    /// `was_sent`: it may have been executed.
    Failed {
        doubt: Doubt,
        was_sent: bool,
    },
}

impl Forwarder {
    pub(crate) fn new(upstream: Upstream, sessions: Arc<Sessions>, job: &str, poll: Poll) -> Self {
        let mut ours = HeaderMap::new();
        let job = HeaderValue::from_str(job).expect("the configuration was checked");
        ours.insert(HeaderName::from_static(metadata::JOB), job);
        if poll == Poll::Hold {
            ours.insert(HeaderName::from_static(metadata::LASTING), HeaderValue::from_static("1"));
        }
        Self { upstream, sessions, ours: Arc::new(ours) }
    }

    /// Sends a call of this connection until the cluster has answered, and `answer_bytes` has room for the answer. Dropping the
    /// future gives the call up.
    ///
    /// # Errors
    /// The answer of the agent itself: no session can be opened, or it cannot be told any more whether
    /// the call was executed, or there has been no cluster for too long, or there is no room.
    pub(crate) async fn call(
        &self,
        message: &Message,
        caller: CallerConnection,
        answer_bytes: AnswerBytes,
        call: Call,
    ) -> Result<Reply, Status> {
        if let Some(given_up) = self.upstream.is_given_up() {
            return Err(given_up);
        }
        tokio::select! {
            biased;
            answer = self.send(message, caller, answer_bytes, call) => answer,
            given_up = self.upstream.given_up() => Err(given_up),
        }
    }

    /// Has the cluster release a poll, whose task then hears of errors by its heartbeats: CANCELLED, or the
    /// error that there is. `None` if it does not do so in time.
    pub(crate) async fn release(&self, poll: &Message, answer_bytes: &AnswerBytes) -> Option<Reply> {
        let link = self.upstream.current()?;
        let mut ours = (*self.ours).clone();
        ours.remove(metadata::LASTING);
        let last = poll.for_the_last_time();
        let sent = link.send_by_itself(&last, &ours, None, answer_bytes);
        let released = tokio::time::timeout(RELEASE_LIMIT, sent).await;
        released.ok()?.ok().filter(|reply| reply.outage().is_none())
    }

    async fn send(
        &self,
        message: &Message,
        caller: CallerConnection,
        mut answer_bytes: AnswerBytes,
        call: Call,
    ) -> Result<Reply, Status> {
        loop {
            let flight = match call.repeat {
                Repeat::Free => None,
                Repeat::Stamped | Repeat::Recognised => {
                    Some(self.sessions.take(caller, Pace::of(call.kind)).await?)
                }
            };
            let is_certain = match self.attempts(message, flight.as_ref(), &mut answer_bytes).await {
                Ok(reply) => return Ok(reply),
                Err(Unfinished::Short(short)) => return Err(refusal(short)),
                Err(Unfinished::SessionGone { is_certain }) => is_certain,
            };
            if let Some(flight) = flight {
                flight.lost();
            }
            if !is_certain && call.repeat != Repeat::Recognised {
                return Err(Status::unavailable(format!(
                    "outcome unknown: the session of this call expired while {} was under way; look whether \
                     it took effect before sending it again",
                    message.path
                )));
            }
        }
    }

    /// Attempts with one stamp.
    async fn attempts(
        &self,
        message: &Message,
        flight: Option<&Flight>,
        answer_bytes: &mut AnswerBytes,
    ) -> Result<Reply, Unfinished> {
        let stamp = flight.map(|flight| flight.stamp().header());
        let mut is_certain = true;
        let mut pause = self.upstream.timing().pause_min;
        loop {
            let link = self.upstream.link().await;
            let attempt = tokio::select! {
                // An answer that is here counts, even if the link is left at the same moment.
                biased;
                attempt = self.attempt(&link, message, stamp.clone(), answer_bytes) => attempt,
                () = self.upstream.left(&link) => Err(Unanswered::Left),
            };
            match attempt {
                Ok(reply) => return Ok(reply),
                Err(Unanswered::SessionGone) => return Err(Unfinished::SessionGone { is_certain }),
                Err(Unanswered::Left) => is_certain = false,
                Err(Unanswered::NoRoom(NoRoom::Short(short))) => return Err(Unfinished::Short(short)),
                Err(Unanswered::NoRoom(NoRoom::Unread)) => {
                    is_certain = false;
                    answer_bytes.wait().await.map_err(Unfinished::Short)?;
                }
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
        answer_bytes: &AnswerBytes,
    ) -> Result<Reply, Unanswered> {
        let sent = link.send(message, &self.ours, stamp, answer_bytes).await;
        if link.takes_leave() {
            self.upstream.doubt(link, Doubt::Stopping);
        }
        let reply = match sent {
            Ok(reply) => reply,
            Err(Incomplete::NoRoom(no_room)) => {
                self.upstream.heard();
                return Err(Unanswered::NoRoom(no_room));
            }
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
