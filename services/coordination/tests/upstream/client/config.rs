//! How an agent is set up.

use std::time::Duration;

use tripod_state::ids::DurationMs;
use tripod_state::job;

/// Between two beats of a task that nothing is to happen to.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);
/// The heartbeat timeout where a task is to be missed: long enough that a busy machine does not miss others.
pub(crate) const IMPATIENT: Duration = Duration::from_secs(3);

/// What upstream's agent is told when it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// For how long it tries to register.
    pub(crate) init_timeout: Duration,
    pub(crate) heartbeat_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// How much longer than these a call waits, so that an error of the service can come back.
    pub(crate) spare: Duration,
    /// Whether it says goodbye when it shuts down.
    pub(crate) says_goodbye: bool,
    /// Whether it polls for errors from the start.
    pub(crate) polls: bool,
    /// Whether it compresses what it sends, as clients of JAX do.
    pub(crate) compresses: bool,
}

impl Config {
    /// An agent that knows the time-outs of its job.
    pub(crate) fn of(spec: &job::Spec) -> Self {
        let duration = |length: DurationMs| Duration::from_millis(length.0);
        Self {
            init_timeout: duration(spec.register_timeout_ms),
            heartbeat_timeout: duration(spec.heartbeat_timeout_ms),
            shutdown_timeout: duration(spec.shutdown_timeout_ms),
            spare: Duration::from_secs(5),
            says_goodbye: true,
            polls: true,
            compresses: false,
        }
    }
}

/// A job of `tasks` tasks as upstream's tests have it: polls are held, and nothing times out by accident.
pub(crate) fn spec(tasks: u32) -> job::Spec {
    job::Spec {
        poll: job::Poll::Hold,
        heartbeat_timeout_ms: ms(PATIENT),
        register_timeout_ms: ms(PATIENT),
        shutdown_timeout_ms: ms(PATIENT),
        ..job::Spec::of_tasks(tasks)
    }
}

/// [`spec`], where a silent task is soon missed.
pub(crate) fn impatient(tasks: u32) -> job::Spec {
    job::Spec { heartbeat_timeout_ms: ms(IMPATIENT), ..spec(tasks) }
}

/// A length of time as specifications have it.
pub(crate) fn ms(length: Duration) -> DurationMs {
    DurationMs(u64::try_from(length.as_millis()).expect("a short time"))
}
