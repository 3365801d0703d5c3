//! One call, tried at one node after the other until it is answered or time is up.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tonic::{Code, Response, Status};
use tripod_backoff::Backoff;
use tripod_calls::Way;
use tripod_dial::Shown;

use crate::config::Config;
use crate::endpoint::{Connect, Node};
use crate::error::{Attempt, Error, Phase};
use crate::nodes::Nodes;

/// Metadata key of the server's machine-readable word for a refusal.
const REASON: &str = "tripod-reason";
/// The reason of an answer whose command may have been executed.
const OUTCOME_UNKNOWN: &str = "outcome-unknown";
/// The reason of an answer of a node that knows no leader; nothing was executed.
const NO_LEADER: &str = "no-leader";
/// How long one node may keep a call that another node could answer: a stopped process still accepts
/// connections. Twice as long each time that all nodes were tried: a value of 64 MiB may need longer on every one of them.
const ATTEMPT_MAX: Duration = Duration::from_secs(3);
/// Rest after all nodes failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(25), Duration::from_secs(1));

/// Whether a call may be sent again after an attempt that may have been executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Executing it twice changes nothing that matters: reads.
    Freely,
    /// The second execution is recognised by its stamp, but that it happened at all must be told.
    SameStamp,
    /// Only after attempts that certainly were not executed.
    IfNotExecuted,
}

/// What came of one attempt that brought no answer.
struct Failure {
    attempt: Attempt,
    maybe_executed: bool,
    /// Time ran out before it came to anything: an earlier attempt at this node tells more.
    cut: bool,
}

/// What is known of a call that has not been answered yet.
struct Progress {
    what: &'static str,
    repeat: Repeat,
    begun: Instant,
    deadline: Instant,
    /// The last attempt at each node.
    attempts: Vec<Attempt>,
    maybe_executed: bool,
}

/// Sends calls by the rules of this client.
#[derive(Debug)]
pub(crate) struct Caller {
    nodes: Nodes,
    timeout: Duration,
}

impl Caller {
    pub(crate) fn new(config: &Config, connect: Option<&Connect>) -> Result<Self, Error> {
        Ok(Self { nodes: Nodes::reached_by(&config.endpoints, connect)?, timeout: config.timeout })
    }

    /// The same, whose calls go by streams where nodes have them.
    pub(crate) fn by_streams(self) -> Self {
        Self { nodes: self.nodes.by_streams(), ..self }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        self.nodes.all()
    }

    /// Sends until a node answers.
    ///
    /// # Errors
    /// [`Error`], with the last attempt at each node.
    pub(crate) async fn call<T, F, Fut>(
        &self,
        what: &'static str,
        repeat: Repeat,
        send: F,
    ) -> Result<T, Error>
    where
        F: Fn(Way) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let mut progress = Progress::new(what, repeat, self.timeout);
        let (mut backoff, mut attempt_max) = (BACKOFF, ATTEMPT_MAX);
        loop {
            let first = self.nodes.preferred();
            for offset in 0..self.nodes.count() {
                let place = (first + offset) % self.nodes.count();
                let node = &self.nodes.all()[place];
                match attempt(node, &send, self.attempt_limit(&progress, attempt_max)).await {
                    Ok(Ok(answer)) => {
                        self.nodes.answered(place, &answer);
                        return Ok(answer.into_inner());
                    }
                    Ok(Err(status)) => return Err(progress.refused(node, &status)),
                    Err(failure) => progress = progress.after(failure)?,
                }
            }
            attempt_max = attempt_max.saturating_mul(2).min(self.timeout.max(ATTEMPT_MAX));
            tokio::time::sleep_until((Instant::now() + backoff.pause()).min(progress.deadline)).await;
        }
    }

    /// When to give up on one node: with the whole call if asking another would help nothing.
    fn attempt_limit(&self, progress: &Progress, attempt_max: Duration) -> Instant {
        if self.nodes.count() == 1 || progress.repeat == Repeat::IfNotExecuted {
            return progress.deadline;
        }
        progress.deadline.min(Instant::now() + attempt_max)
    }
}

impl Progress {
    fn new(what: &'static str, repeat: Repeat, timeout: Duration) -> Self {
        let begun = Instant::now();
        let deadline = begun + timeout;
        Self { what, repeat, begun, deadline, attempts: Vec::new(), maybe_executed: false }
    }

    /// Notes a failed attempt, and ends the call if it must not or cannot go on.
    fn after(mut self, failure: Failure) -> Result<Self, Error> {
        let Failure { attempt, maybe_executed, cut } = failure;
        tracing::debug!(endpoint = %attempt.endpoint, phase = %attempt.phase, cause = %attempt.cause, "attempt failed");
        self.maybe_executed |= maybe_executed;
        match self.attempts.iter_mut().find(|kept| kept.endpoint == attempt.endpoint) {
            Some(_) if cut => {}
            Some(kept) => *kept = attempt,
            None => self.attempts.push(attempt),
        }
        let out_of_time = Instant::now() >= self.deadline;
        let untold = match self.repeat {
            Repeat::Freely => false,
            Repeat::SameStamp => self.maybe_executed && out_of_time,
            Repeat::IfNotExecuted => self.maybe_executed,
        };
        if untold {
            return Err(Error::OutcomeUnknown { what: self.what, attempts: self.attempts });
        }
        if out_of_time {
            let waited = self.begun.elapsed();
            return Err(Error::Unavailable { what: self.what, waited, attempts: self.attempts });
        }
        Ok(self)
    }

    fn refused(self, node: &Node, status: &Status) -> Error {
        Error::Refused {
            what: self.what,
            endpoint: node.address.clone(),
            code: status.code(),
            reason: reason(status).to_owned(),
            message: status.message().to_owned(),
            after_unknown: self.maybe_executed,
        }
    }
}

/// One attempt at one node. The inner result is the cluster's answer, yes or no; the outer error means
/// that this node had none.
async fn attempt<T, F, Fut>(
    node: &Node,
    send: &F,
    limit: Instant,
) -> Result<Result<Response<T>, Status>, Failure>
where
    F: Fn(Way) -> Fut,
    Fut: Future<Output = Result<Response<T>, Status>>,
{
    let failed = |phase, cause: &str, maybe_executed| Failure {
        attempt: Attempt { endpoint: node.address.clone(), phase, cause: cause.to_owned() },
        maybe_executed,
        cut: false,
    };
    let shown = Shown::now();
    let way = match timeout_at(limit, node.way()).await {
        Ok(Ok(way)) => way,
        Ok(Err(attempt)) => return Err(Failure { attempt, maybe_executed: false, cut: false }),
        Err(_) => {
            let failed = failed(Phase::Connect, "no connection in time", false);
            return Err(Failure { cut: true, ..failed });
        }
    };
    let status = match timeout_at(limit, send(way)).await {
        Ok(Ok(response)) => return Ok(Ok(response)),
        Ok(Err(status)) => status,
        Err(_) => {
            node.disconnect();
            return Err(failed(Phase::Call, "no answer in time", true));
        }
    };
    if let Some(cause) = std::error::Error::source(&status) {
        // The connection broke, or the stream, before or after the node received the call.
        node.disconnect();
        let attempt = node.failed(Phase::Call, cause);
        return Err(Failure { attempt, maybe_executed: true, cut: false });
    }
    if reason(&status) == OUTCOME_UNKNOWN {
        return Err(failed(Phase::Commit, status.message(), true));
    }
    match status.code() {
        Code::Unavailable if reason(&status) == NO_LEADER => {
            Err(failed(Phase::Leader, status.message(), false))
        }
        // The node says that it did nothing. A token that has run out is not shown again, if there is another one.
        Code::Unavailable => Err(failed(Phase::Call, status.message(), false)),
        Code::Unauthenticated if shown.is_replaced() => Err(failed(Phase::Call, status.message(), false)),
        // Nobody of ours answers so; something between us and the node did, or the stream was reset.
        Code::Cancelled | Code::DeadlineExceeded | Code::Unknown => {
            Err(failed(Phase::Call, status.message(), true))
        }
        _ => Ok(Err(status)),
    }
}

fn reason(status: &Status) -> &str {
    // A scheduler's own calls have its protocol's name for it.
    let word =
        status.metadata().get(REASON).or_else(|| status.metadata().get(tripod_proto::metadata::RAY_REASON));
    word.and_then(|value| value.to_str().ok()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_time_cut_short_does_not_hide_what_an_earlier_one_found() {
        let failure = |phase, cause: &str, cut| {
            let attempt = Attempt { endpoint: "a:1".to_owned(), phase, cause: cause.to_owned() };
            Failure { attempt, maybe_executed: false, cut }
        };
        let progress = Progress::new("kv get", Repeat::Freely, Duration::from_secs(60));
        let found = failure(Phase::Resolve, "no such name", false);
        let progress = progress.after(found).unwrap_or_else(|error| panic!("{error}"));
        let progress = progress.after(failure(Phase::Connect, "no connection in time", true));
        let attempts = progress.unwrap_or_else(|error| panic!("{error}")).attempts;
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].cause, "no such name");
    }
}
