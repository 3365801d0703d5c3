//! Heartbeats of the clients: told to the cluster in batches, and answered from a lease when the cluster
//! is silent.
//!
//! A client ends its process when a heartbeat is not answered within its time, or is answered with any
//! error. So a beat is answered with the cluster's verdict if there is one in time, and else with the
//! answer that the same beat got before. Such a beat stays due and is told as soon as it can be. No beat
//! is told that no client made.
//!
//! | module | what |
//! |---|---|
//! | `life` | what a registration says about the first heartbeat |
//! | `presence` | clients that have registered and not sent a heartbeat yet |
//! | `mismatch` | says so when a program and its job do not agree on when a task is lost |
//! | `teller` | tells batches to the cluster |
//!
//! Which beats are due, what they were answered before, and which of them the leader keeps is in `tripod-beats`.

mod life;
mod mismatch;
mod presence;
mod teller;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tonic::Status;
pub(crate) use tripod_beats::Beat;
use tripod_beats::{BEATS_MAX, Lease, Ledger, Sets};

use self::life::Registered;
use self::mismatch::Mismatch;
use self::presence::Followed;
pub(crate) use self::teller::Teller;
use crate::calls::Dialect;
use crate::meters::Meters;
use crate::raw::LOOKED_BYTES_MAX;
use crate::upstream::Upstream;

/// Which part of a client's patience the cluster gets before the lease answers, in percent.
const PATIENCE_PERCENT: u32 = 60;
/// How long the cluster gets for clients that give no deadline.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(2);

/// The heartbeats of all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Beats {
    upstream: Upstream,
    meters: Arc<Meters>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    registered: Mutex<Registered>,
    followed: Mutex<Followed>,
    mismatch: Mismatch,
    sets: Mutex<Sets>,
    /// Told when a beat has become due.
    due: Notify,
}

impl Beats {
    pub(crate) fn new(upstream: Upstream, meters: Arc<Meters>) -> Self {
        Self { upstream, meters, shared: Arc::default() }
    }

    /// A client's heartbeat. `given` is the client's own deadline.
    ///
    /// # Errors
    /// The cluster's verdict, or that there has been no cluster for too long.
    pub(crate) async fn beat(
        &self,
        dialect: Dialect,
        beat: Beat,
        given: Option<Duration>,
    ) -> Result<Bytes, Status> {
        if let Some(given_up) = self.upstream.is_given_up() {
            return Err(given_up);
        }
        let bytes = beat.message.len();
        if bytes > LOOKED_BYTES_MAX {
            return Err(Status::resource_exhausted(format!(
                "the heartbeat has {bytes} bytes, and {LOOKED_BYTES_MAX} is the most; no client of a job needs more"
            )));
        }
        let joined = self.shared.ledger.lock().join(&beat, given);
        let Some(mut verdict) = joined else {
            return self.leased(dialect, &beat).ok_or_else(crowded);
        };
        self.shared.due.notify_one();
        let patience = given.map_or(PATIENCE_DEFAULT, |given| given * PATIENCE_PERCENT / 100);
        match tokio::time::timeout(patience, &mut verdict).await {
            Ok(Ok(told)) => return told,
            // It was given up for others.
            Ok(Err(_)) => return self.leased(dialect, &beat).ok_or_else(crowded),
            Err(_) => {}
        }
        if let Some(lease) = self.leased(dialect, &beat) {
            return Ok(lease);
        }
        tokio::select! {
            told = verdict => told.unwrap_or_else(|_| Err(crowded())),
            given_up = self.upstream.given_up() => Err(given_up),
        }
    }

    /// Answers a beat without the cluster, if that can be.
    fn leased(&self, dialect: Dialect, beat: &Beat) -> Option<Bytes> {
        let lease = self.lease(dialect, beat)?;
        self.meters.leased();
        tracing::debug!(path = beat.path, "heartbeat answered from the lease");
        Some(lease)
    }

    /// Compares when a client and its job give up.
    pub(crate) fn compare(&self, given: Duration, job_timeout: Duration) {
        self.shared.mismatch.look(given, job_timeout);
    }

    /// Keeps what a successful registration says about the heartbeats that follow.
    pub(crate) fn registered(&self, dialect: Dialect, request: &[u8], reply: Bytes) {
        self.shared.registered.lock().note(dialect, request, reply);
    }

    /// The answer that this beat would get if nothing has changed.
    fn lease(&self, dialect: Dialect, beat: &Beat) -> Option<Bytes> {
        let told = self.shared.ledger.lock().lease(beat);
        match told {
            Lease::Answer(answer) => Some(answer),
            Lease::Refused => None,
            Lease::None => self.shared.registered.lock().lease(dialect, &beat.message),
        }
    }
}

/// What a beat is answered that the cluster has never taken, and for which there is no place.
fn crowded() -> Status {
    Status::resource_exhausted(format!(
        "this agent keeps {BEATS_MAX} heartbeats that differ, all that it may, and knows of no registration with this \
         one; send it again"
    ))
}
