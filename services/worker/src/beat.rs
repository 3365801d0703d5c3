//! Heartbeats: a process says that it is alive, and is told whether the cluster still thinks so.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tripod_client::wire::heartbeat_request::Kind;
use tripod_client::wire::heartbeat_response::Order;
use tripod_client::wire::{HeartbeatRequest, RayRun};
use tripod_client::{Error, Scheduler};

use crate::process::Process;

/// Between beats before the cluster has said how often it wants them.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What a process knows of its own liveness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    Good,
    /// Nobody has answered for as long as a process may be silent: it begins nothing new.
    Unheard,
    /// It was given up, and must begin anew.
    Expired,
    /// It is to end.
    Dismissed,
}

/// Beats until the process is given up or dismissed.
pub(crate) async fn of_worker(
    process: Process,
    running: impl Fn() -> Vec<RayRun>,
    liveness: watch::Sender<Liveness>,
) {
    beat(Kind::Worker, process.id, &process.scheduler, running, &liveness).await;
}

/// Beats as long as the future is polled.
pub(crate) async fn of_driver(process: Process) {
    let liveness = watch::Sender::new(Liveness::Good);
    beat(Kind::Driver, process.id, &process.scheduler, Vec::new, &liveness).await;
    tracing::warn!(driver = process.id, "the scheduler has given up this driver: its references are gone");
}

async fn beat(
    kind: Kind,
    id: u64,
    scheduler: &Arc<Scheduler>,
    running: impl Fn() -> Vec<RayRun>,
    liveness: &watch::Sender<Liveness>,
) {
    let (mut heard, mut ttl) = (Instant::now(), None);
    loop {
        let message =
            HeartbeatRequest { kind: kind.into(), id, running: running(), ..HeartbeatRequest::default() };
        match scheduler.heartbeat(message).await {
            Ok(answer) => {
                heard = Instant::now();
                ttl = Some(Duration::from_millis(answer.ttl_ms));
                let told = match answer.order() {
                    Order::None => Liveness::Good,
                    Order::Reregister => Liveness::Expired,
                    Order::Die => Liveness::Dismissed,
                };
                liveness.send_replace(told);
                if told != Liveness::Good {
                    return;
                }
            }
            Err(error @ Error::Refused { .. }) if error.has_reason("expired") => {
                liveness.send_replace(Liveness::Expired);
                return;
            }
            Err(error) => {
                tracing::debug!(%error, "heartbeat not answered");
                if ttl.is_some_and(|ttl| heard.elapsed() > ttl) {
                    liveness.send_replace(Liveness::Unheard);
                }
            }
        }
        sleep(ttl.map_or(FIRST_PAUSE, |ttl| ttl / 3)).await;
    }
}
