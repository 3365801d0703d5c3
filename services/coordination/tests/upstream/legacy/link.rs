//! What the clients of both protocols have in common: patience, and hearing that something is wrong.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::{Code, Response, Status};

use crate::support::LONG;

/// Between two attempts of a call that finds nobody listening.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two attempts to connect is two to this power, in milliseconds.
const BACKOFF_EXPONENT_MAX: u32 = 14;

/// How a client is set up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// For how long it tries to connect; zero means one attempt.
    pub(super) init_timeout: Duration,
    pub(super) rpc_timeout: Duration,
    pub(super) shutdown_timeout: Duration,
    pub(super) heartbeat_interval: Duration,
    pub(super) max_missing_heartbeats: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            init_timeout: LONG,
            rpc_timeout: LONG,
            shutdown_timeout: LONG,
            heartbeat_interval: Duration::from_secs(5),
            max_missing_heartbeats: 4,
        }
    }
}

impl Options {
    /// For a job that soon misses who is silent.
    pub(super) fn impatient() -> Self {
        Self { heartbeat_interval: Duration::from_millis(750), ..Self::default() }
    }

    pub(super) fn heartbeat_timeout(&self) -> Duration {
        self.heartbeat_interval * self.max_missing_heartbeats
    }
}

/// Whether the client is still there, and what it was told.
#[derive(Debug)]
pub(super) struct Link {
    over: watch::Sender<bool>,
    told: watch::Sender<Option<Status>>,
}

impl Link {
    pub(super) fn new() -> Self {
        Self { over: watch::Sender::new(false), told: watch::Sender::new(None) }
    }

    /// Waits so long, and tells whether the client is still there then.
    pub(super) async fn lasts(&self, interval: Duration) -> bool {
        let mut over = self.over.subscribe();
        timeout(interval, over.wait_for(|over| *over)).await.is_err()
    }

    /// There are no more heartbeats.
    pub(super) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Runs the callback for missed heartbeats, if this is the first error.
    pub(super) fn fail(&self, status: &Status) {
        self.told.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert_with(|| status.clone());
            first
        });
    }

    pub(super) fn has_failed(&self) -> bool {
        self.told.borrow().is_some()
    }

    /// Waits until the callback runs, and gives what it is told.
    pub(super) async fn failed(&self) -> Status {
        let mut told = self.told.subscribe();
        let told = tripod_wait::within("an error", told.wait_for(Option::is_some)).await;
        told.expect("the link is here").clone().expect("waited for it")
    }
}

/// A call that waits for its service to listen, for so long altogether.
pub(super) async fn patiently<T, F>(limit: Duration, call: impl Fn() -> F) -> Result<T, Status>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    let attempts = async {
        loop {
            match call().await {
                // Only an error of the transport has a source.
                Err(status) if std::error::Error::source(&status).is_some() => sleep(PAUSE).await,
                outcome => return outcome.map(Response::into_inner),
            }
        }
    };
    let over = Err(Status::deadline_exceeded("Deadline Exceeded"));
    timeout_at(Instant::now() + limit, attempts).await.unwrap_or(over)
}

/// Attempts until one succeeds, or `again` says of its error that it is the last, with pauses that grow.
pub(super) async fn repeatedly<T, F>(
    attempt: impl Fn() -> F,
    again: impl Fn(&Status) -> bool,
) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>>,
{
    let mut attempts = 0;
    loop {
        let status = match attempt().await {
            Ok(reply) => return Ok(reply),
            Err(status) => status,
        };
        // Upstream waits for a random part of twice as long.
        sleep(Duration::from_micros(500) * (1 << BACKOFF_EXPONENT_MAX.min(attempts))).await;
        attempts += 1;
        if !again(&status) {
            return Err(status);
        }
    }
}

/// Whether a heartbeat that failed so may be followed by a better one.
pub(super) fn is_transient(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::Unavailable)
}
