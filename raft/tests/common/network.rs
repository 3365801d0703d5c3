//! A network in memory for the nodes of one thread. The ways between them can be cut, held and closed, can lose what
//! comes back, and are measured.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use rand::RngExt as _;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tripod_raft::{BoxFuture, Chance, Listener, Network, Stream};

use super::meter::Meter;
use super::trip::Trip;

/// The longest that anything is under way, in milliseconds. One of these holds for a whole run.
const LATENCIES_MS: [u64; 4] = [1, 3, 10, 25];

/// What becomes of connections from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Whole,
    /// Requests arrive, answers do not.
    LosesAnswers,
    /// Nothing moves, and all of it does when the wire is whole again.
    Held,
    /// Open connections go on, and nobody else is let in.
    Closed,
    /// Open connections end, and nobody is let in.
    Cut,
}

/// Who listens, and the ways from everybody to everybody. Clones are the same.
#[derive(Clone)]
pub(crate) struct Exchange {
    inner: Arc<Mutex<Inner>>,
    pub(super) began: Instant,
    pub(crate) latency_max_ms: u64,
}

#[derive(Default)]
struct Inner {
    addresses: u64,
    listeners: BTreeMap<String, mpsc::UnboundedSender<DuplexStream>>,
    /// By where they lead from and to.
    ways: BTreeMap<(String, String), watch::Sender<Wire>>,
    /// What a way to there is when it is used first.
    new_ways: BTreeMap<String, Wire>,
    meters: BTreeMap<String, Arc<Meter>>,
}

impl Exchange {
    pub(crate) fn new() -> Self {
        let latency_max_ms = LATENCIES_MS[Chance.random_range(0..LATENCIES_MS.len())];
        Self { inner: Arc::default(), began: Instant::now(), latency_max_ms }
    }

    /// One that nobody has.
    pub(crate) fn new_address(&self) -> String {
        let mut inner = self.inner.lock().unwrap();
        inner.addresses += 1;
        format!("host-{}:7000", inner.addresses)
    }

    /// The network as whoever is at an address sees it.
    pub(crate) fn at(&self, address: &str) -> Arc<dyn Network> {
        Arc::new(HostNetwork { exchange: self.clone(), address: address.to_owned() })
    }

    /// Changes the way from one address to another.
    pub(crate) fn set(&self, from: &str, to: &str, wire: Wire) {
        self.way(from, to).send_replace(wire);
    }

    /// Changes all ways to an address.
    pub(crate) fn set_all(&self, to: &str, wire: Wire) {
        let mut inner = self.inner.lock().unwrap();
        inner.new_ways.insert(to.to_owned(), wire);
        let ways = inner.ways.iter().filter(|((_, end), _)| end == to);
        ways.for_each(|(_, way)| _ = way.send_replace(wire));
    }

    /// What is measured on all ways to an address.
    pub(crate) fn meter(&self, to: &str) -> Arc<Meter> {
        self.inner.lock().unwrap().meters.entry(to.to_owned()).or_default().clone()
    }

    fn way(&self, from: &str, to: &str) -> watch::Sender<Wire> {
        let mut inner = self.inner.lock().unwrap();
        let wire = inner.new_ways.get(to).copied().unwrap_or(Wire::Whole);
        let way = inner.ways.entry((from.to_owned(), to.to_owned()));
        way.or_insert_with(|| watch::Sender::new(wire)).clone()
    }

    /// Whether somebody lets the visitor in.
    pub(super) fn knock(&self, to: &str, visitor: DuplexStream) -> bool {
        let inner = self.inner.lock().unwrap();
        inner.listeners.get(to).is_some_and(|listener| listener.send(visitor).is_ok())
    }
}

/// The network as it is seen from one address.
struct HostNetwork {
    exchange: Exchange,
    address: String,
}

impl Network for HostNetwork {
    fn connect(&self, to: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let trip = Trip {
            exchange: self.exchange.clone(),
            to: to.to_owned(),
            name: format!("{} to {to}", self.address),
            wire: self.exchange.way(&self.address, to),
            meter: self.exchange.meter(to),
        };
        Box::pin(trip.connect())
    }

    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let (listener, arrivals) = mpsc::unbounded_channel();
        let mut inner = self.exchange.inner.lock().unwrap();
        let is_taken = inner.listeners.get(address).is_some_and(|listener| !listener.is_closed());
        let listens = if is_taken {
            Err(io::ErrorKind::AddrInUse.into())
        } else {
            inner.listeners.insert(address.to_owned(), listener);
            Ok(Box::new(Arrivals(arrivals)) as Box<dyn Listener>)
        };
        Box::pin(std::future::ready(listens))
    }
}

struct Arrivals(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for Arrivals {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            match self.0.recv().await {
                Some(stream) => Ok(Box::new(stream) as Box<dyn Stream>),
                None => std::future::pending().await,
            }
        })
    }
}
