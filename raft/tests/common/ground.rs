//! What the nodes of a cluster stand on: this machine, or a simulation.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rand::Rng as _;
use tempfile::TempDir;
use tripod_raft::{Chance, LogLine, Observer, Options, SimulatedDisk, Timing, World};
use tripod_state::ids::{DurationMs, LogIndex, NodeId, TimeMs};

use super::network::Exchange;

/// When simulations begin, by the clocks on their walls: some day in 2026.
const EPOCH_MS: u64 = 1_780_000_000_000;

/// The ground under one cluster.
pub(crate) enum Ground {
    /// Loopback, a directory, threads and time.
    Real(TempDir),
    Simulated(Simulated),
}

/// Nothing but memory.
pub(crate) struct Simulated {
    exchange: Exchange,
    /// A node has one from its first start on.
    disks: Mutex<BTreeMap<NodeId, SimulatedDisk>>,
    applied: Arc<Applied>,
}

impl Ground {
    pub(crate) fn real() -> Self {
        Self::Real(TempDir::new().unwrap())
    }

    pub(crate) fn simulated() -> Self {
        Self::over(Exchange::new())
    }

    /// Ground for another cluster that can be reached from this one.
    pub(crate) fn beside(&self) -> Self {
        Self::over(self.exchange().clone())
    }

    fn over(exchange: Exchange) -> Self {
        Self::Simulated(Simulated { exchange, disks: Mutex::default(), applied: Arc::default() })
    }

    /// A peer address that nobody has.
    pub(crate) fn new_peer(&self) -> String {
        match self {
            Self::Real(_) => format!("127.0.0.1:{}", free_port()),
            Self::Simulated(simulated) => simulated.exchange.new_address(),
        }
    }

    /// Where a node's data lie, or would.
    pub(crate) fn data(&self, node: NodeId) -> PathBuf {
        let name = format!("node-{node}");
        match self {
            Self::Real(directory) => directory.path().join(name),
            Self::Simulated(_) => PathBuf::from("/simulated").join(name),
        }
    }

    /// Clocks for clusters here.
    pub(crate) fn timing(&self) -> Timing {
        match self {
            // Slower than the default: tests share two cores.
            Self::Real(_) => Timing {
                heartbeat: DurationMs(150),
                election_min: DurationMs(800),
                election_max: DurationMs(1600),
            },
            Self::Simulated(_) => Timing::default(),
        }
    }

    pub(crate) fn world(&self, options: &Options) -> World {
        let Self::Simulated(simulated) = self else { return World::real() };
        let network = simulated.exchange.at(&options.peer_listen);
        let began = simulated.exchange.began;
        let clock = move || TimeMs(EPOCH_MS + u64::try_from(began.elapsed().as_millis()).unwrap());
        let world = World::simulated(network, self.disk(options.node), Arc::new(clock));
        world.observed(simulated.applied.clone())
    }

    fn simulation(&self) -> &Simulated {
        let Self::Simulated(simulated) = self else { panic!("this is for simulations") };
        simulated
    }

    pub(crate) fn exchange(&self) -> &Exchange {
        &self.simulation().exchange
    }

    pub(crate) fn disk(&self, node: NodeId) -> SimulatedDisk {
        let mut disks = self.simulation().disks.lock().unwrap();
        disks.entry(node).or_insert_with(|| SimulatedDisk::new(Chance.next_u64())).clone()
    }

    /// What the nodes have applied, by index.
    pub(crate) fn applied(&self) -> BTreeMap<LogIndex, LogLine> {
        self.simulation().applied.0.lock().unwrap().clone()
    }
}

/// What the nodes of a cluster have applied, told by themselves.
#[derive(Default)]
struct Applied(Mutex<BTreeMap<LogIndex, LogLine>>);

impl Observer for Applied {
    fn applied(&self, line: LogLine) {
        let known = *self.0.lock().unwrap().entry(line.index).or_insert(line);
        assert_eq!(known, line, "two nodes, or two starts of one, applied different entries");
    }
}

/// A port that is free, and that the kernel gives to nobody who does not ask for it: it lies below those
/// for outgoing connections and for whoever binds port 0. Processes at the same time begin at other ones,
/// and one that another of them was given is left to it as long as that one lives: its node may be stopped
/// just now, and start again there.
pub(crate) fn free_port() -> u16 {
    const PORTS: Range<u32> = 8_000..12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static GUARDS: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let begin = std::process::id().wrapping_mul(61);
    let candidates = (0..PORTS.end - PORTS.start).map(|_| {
        let step = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        u16::try_from(PORTS.start + step % (PORTS.end - PORTS.start)).unwrap()
    });
    let free = |port: &u16| {
        let Some(guard) = guard(*port) else { return false };
        let is_free = TcpListener::bind(("127.0.0.1", *port)).is_ok();
        if is_free {
            GUARDS.lock().unwrap().push(guard);
        }
        is_free
    };
    candidates.into_iter().find(free).expect("one of 4000 ports is free")
}

/// Stands for a port: the kernel gives an abstract name to one process, and takes it back when that ends.
fn guard(port: u16) -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(format!("tripod-raft-tests-port-{port}")).ok()?;
    UnixDatagram::bind_addr(&address).ok()
}
