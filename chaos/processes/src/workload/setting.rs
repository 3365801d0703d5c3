//! What all clients of a run share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_client::{Client, Config};

use crate::attack::{Aim, Tally};
use tripod_checkers::history::{Call, ClientId, Micros, NodeId, Outcome, Pending, Recorder};

/// How long a call of the client library may take, all attempts together.
const LIBRARY_TIMEOUT: Duration = Duration::from_secs(8);

/// The run's own clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

/// Where clients reach a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub node: NodeId,
    /// `HOST:PORT`.
    pub address: String,
}

/// What all clients of a run share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Setting {
    pub endpoints: Arc<[Endpoint]>,
    /// Agents of job `default`, which clients of registers may call in place of a node.
    pub agents: Vec<Endpoint>,
    pub recorder: Recorder,
    pub clock: Clock,
    pub seed: u64,
    /// The service incarnation of job `default`, without which dialect N answers nothing.
    pub service: u64,
    /// Becomes true when clients are to make no further calls.
    pub stop: watch::Receiver<bool>,
    /// The address of the machine that the drivers of the scheduler are on, if there is one.
    pub driver_host: String,
    /// What attackers go for, if there are some.
    pub aim: Option<Aim>,
    attacks: Arc<Mutex<BTreeMap<&'static str, Tally>>>,
    clients: Arc<AtomicU32>,
    values: Arc<AtomicU64>,
}

impl Clock {
    /// Zero is now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Micros {
        Micros(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

impl Setting {
    /// Of a run whose clock starts now.
    #[must_use]
    pub fn new(
        endpoints: Vec<Endpoint>,
        recorder: Recorder,
        seed: u64,
        service: u64,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            endpoints: endpoints.into(),
            agents: Vec::new(),
            recorder,
            clock: Clock::start(),
            seed,
            service,
            stop,
            driver_host: String::new(),
            aim: None,
            attacks: Arc::default(),
            clients: Arc::default(),
            values: Arc::new(AtomicU64::new(1)),
        }
    }

    /// An id that no other client of the run has.
    #[must_use]
    pub fn client_id(&self) -> ClientId {
        ClientId(self.clients.fetch_add(1, Ordering::Relaxed))
    }

    /// A number that this run has not used yet.
    #[must_use]
    pub fn fresh(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed)
    }

    /// Chance for one client, the same in every run of the seed.
    #[must_use]
    pub fn random(&self, client: ClientId) -> StdRng {
        StdRng::seed_from_u64(self.seed ^ u64::from(client.0).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Counts what came of an attack.
    pub(super) fn attacked(&self, name: &'static str, tally: &Tally) {
        self.attacks.lock().entry(name).or_default().merge(tally);
    }

    /// What came of all attacks so far, by name.
    #[must_use]
    pub fn attacks(&self) -> BTreeMap<&'static str, Tally> {
        self.attacks.lock().clone()
    }

    /// Whether clients are to go on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !*self.stop.borrow()
    }

    /// Notes that a call is about to be made.
    pub fn invoke(&self, client: ClientId, call: Call) -> Pending {
        self.recorder.invoke(self.clock.now(), client, call)
    }

    /// Notes how a call ended.
    pub fn complete(&self, pending: Pending, outcome: Outcome) {
        pending.complete(self.clock.now(), outcome);
    }

    /// The client library, which asks the nodes in an order that chance decides, by streams or without.
    ///
    /// # Panics
    /// The endpoints are no addresses, which the harness made itself.
    #[must_use]
    pub fn library(&self, random: &mut StdRng) -> Client {
        let mut endpoints: Vec<String> =
            self.endpoints.iter().map(|endpoint| endpoint.address.clone()).collect();
        let first = random.random_range(0..endpoints.len());
        endpoints.rotate_left(first);
        let config = Config { endpoints, timeout: LIBRARY_TIMEOUT };
        let client =
            if random.random_bool(0.5) { Client::new(&config) } else { Client::without_streams(&config) };
        client.expect("addresses of our own ports are addresses")
    }

    /// Waits a random while, at most `most_ms`, or until clients are to stop.
    pub async fn rest(&mut self, random: &mut StdRng, most_ms: u64) {
        let while_ms = random.random_range(0..=most_ms);
        let rest = tokio::time::sleep(Duration::from_millis(while_ms));
        tokio::select! {
            () = rest => {}
            _ = self.stop.wait_for(|stop| *stop) => {}
        }
    }
}
