//! What can go wrong, by who can act.

use std::fmt;
use std::time::Duration;

use tonic::Code;

/// How far an attempt came, from the nearest to the furthest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The name of the node has no address: nothing was sent.
    Resolve,
    /// No connection: nothing was sent.
    Connect,
    /// Connected, and the call failed or was not answered in time.
    Call,
    /// The node answered that it knows no leader: nothing was executed.
    Leader,
    /// The node passed the call on and does not know what came of it.
    Commit,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Call => "call",
            Self::Leader => "leader",
            Self::Commit => "commit",
        })
    }
}

/// One attempt at one node that brought no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub endpoint: String,
    pub phase: Phase,
    pub cause: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.endpoint, self.phase, self.cause)
    }
}

/// Why a call brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller's configuration is wrong; nothing was tried.
    #[error("{0}")]
    Config(String),
    /// No node could serve the call in time, and none executed it.
    #[error("{what}: no node could answer within {}: {}; next: `tripod status`", seconds(*.waited), list(.attempts))]
    Unavailable {
        /// Which call.
        what: &'static str,
        waited: Duration,
        /// The last attempt at each node.
        attempts: Vec<Attempt>,
    },
    /// The call may have been executed and its answer was lost; it was not safe to repeat it.
    #[error("{what}: the outcome is unknown: {}; next: look whether it took effect before sending it again", list(.attempts))]
    OutcomeUnknown { what: &'static str, attempts: Vec<Attempt> },
    /// The cluster answered no. The message says why and what to do.
    #[error("{what}: {message} (answered by {endpoint})")]
    Refused {
        what: &'static str,
        endpoint: String,
        code: Code,
        /// The server's machine-readable word for the refusal, empty if it gave none.
        reason: String,
        message: String,
        /// An earlier attempt of the same call may have been executed.
        after_unknown: bool,
    },
}

impl Error {
    /// Whether the cluster refused with this machine-readable reason.
    #[must_use]
    pub fn has_reason(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason == wanted)
    }

    /// Whether the node does not know the call, as an older one does not.
    #[must_use]
    pub fn is_unknown_call(&self) -> bool {
        matches!(self, Self::Refused { code: Code::Unimplemented, .. })
    }

    /// How far the attempt came that came furthest; `None` if none was made, or one was answered.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        let (Self::Unavailable { attempts, .. } | Self::OutcomeUnknown { attempts, .. }) = self else {
            return None;
        };
        attempts.iter().map(|attempt| attempt.phase).max()
    }
}

fn seconds(waited: Duration) -> String {
    format!("{:.1} s", waited.as_secs_f64())
}

fn list(attempts: &[Attempt]) -> String {
    if attempts.is_empty() {
        return "its answer was lost".to_owned();
    }
    attempts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_endpoint_phase_cause_and_next_command() {
        let error = Error::Unavailable {
            what: "kv put",
            waited: Duration::from_millis(1500),
            attempts: vec![Attempt {
                endpoint: "127.0.0.1:7700".into(),
                phase: Phase::Connect,
                cause: "connection refused".into(),
            }],
        };
        assert_eq!(
            error.to_string(),
            "kv put: no node could answer within 1.5 s: 127.0.0.1:7700: connect: connection refused; \
             next: `tripod status`"
        );
    }

    #[test]
    fn an_outcome_that_is_not_known_says_so_without_attempts_too() {
        let error = Error::OutcomeUnknown { what: "kv put", attempts: Vec::new() };
        assert_eq!(
            error.to_string(),
            "kv put: the outcome is unknown: its answer was lost; next: look whether it took effect before \
             sending it again"
        );
    }

    #[test]
    fn the_attempt_that_came_furthest_tells_the_phase() {
        let attempt = |phase| Attempt { endpoint: "a:1".into(), phase, cause: "x".into() };
        let error = |phases: &[Phase]| Error::Unavailable {
            what: "kv get",
            waited: Duration::ZERO,
            attempts: phases.iter().copied().map(attempt).collect(),
        };
        assert_eq!(error(&[Phase::Resolve, Phase::Leader, Phase::Connect]).phase(), Some(Phase::Leader));
        assert_eq!(error(&[Phase::Connect, Phase::Resolve]).phase(), Some(Phase::Connect));
        assert_eq!((error(&[]).phase(), Error::Config(String::new()).phase()), (None, None));
    }
}
