//! One process of a scheduler: it registers and says that it is alive.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tripod_client::wire::heartbeat_request::Kind;
use tripod_client::wire::{HeartbeatRequest, RayBatchRequest, RayCall, RayResult};
use tripod_client::{Client, Config, Offers, Registration, Scheduler};

use super::peer::{self, StoreObjects};

const HOST: &str = "127.0.0.1";
/// Longer than any election, and than a cluster needs that was just started.
const PATIENCE: Duration = Duration::from_secs(60);
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// A worker or a driver.
#[derive(Clone)]
pub(super) struct Process {
    pub(super) id: u64,
    scheduler: Arc<Scheduler>,
}

/// Registers a store that holds nothing but ids; its id and address.
pub(super) async fn store(
    endpoints: &[String],
    job: &str,
    held: &Arc<StoreObjects>,
    parts: &mut JoinSet<()>,
) -> anyhow::Result<(u64, String)> {
    let incoming = tripod_dial::listen((HOST, 0)).await.context("an object store cannot listen")?;
    let address = incoming.local_addr()?.to_string();
    let scheduler = scheduler(endpoints, job)?;
    let id = scheduler.register_store(&address).await.context("cannot register an object store")?.objstoreid;
    peer::serve_store(incoming, id, Arc::clone(held), parts);
    parts.spawn(beat(scheduler, Kind::Store, id));
    Ok((id, address))
}

impl Process {
    /// Registers a worker with so many slots, or a driver; where a worker is to listen.
    pub(super) async fn worker(
        endpoints: &[String],
        job: &str,
        store: &str,
        slots: Option<u32>,
        parts: &mut JoinSet<()>,
    ) -> anyhow::Result<(Self, String)> {
        let scheduler = scheduler(endpoints, job)?;
        let registration = Registration {
            host: HOST.to_owned(),
            store: store.to_owned(),
            is_driver: slots.is_none(),
            slots: slots.unwrap_or(1),
            offers: Offers::default(),
            level_patience: Some(PATIENCE),
        };
        let reply = scheduler.register_worker(&registration).await.context("cannot register a process")?;
        let kind = if slots.is_some() { Kind::Worker } else { Kind::Driver };
        parts.spawn(beat(Arc::clone(&scheduler), kind, reply.workerid));
        Ok((Self { id: reply.workerid, scheduler }, reply.worker_address))
    }

    /// Makes calls, in their order and exactly once.
    pub(super) async fn call(&self, calls: Vec<RayCall>) -> anyhow::Result<Vec<RayResult>> {
        let batch = RayBatchRequest { workerid: Some(self.id), calls };
        Ok(self.scheduler.batch(batch).await?.results)
    }
}

fn scheduler(endpoints: &[String], job: &str) -> anyhow::Result<Arc<Scheduler>> {
    let client = Client::new(&Config::new(endpoints.to_vec()))?;
    Ok(Arc::new(Scheduler::new(client, job, rand::random(), PATIENCE)))
}

/// Says that a process is alive until the run is over.
async fn beat(scheduler: Arc<Scheduler>, kind: Kind, id: u64) {
    loop {
        let message = HeartbeatRequest { kind: kind.into(), id, ..HeartbeatRequest::default() };
        if let Err(error) = scheduler.heartbeat(message).await {
            eprintln!("warning: heartbeat of {kind:?} {id}: {error}");
        }
        tokio::time::sleep(BEAT_EVERY).await;
    }
}
