//! The scheduler's workers and object stores as processes of the same binary, on addresses of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::Cluster;
use super::options::{find_chaos, find_tripod};
use super::process::NodeProcess;
use super::reservation::ReservedPorts;
use crate::played::PLAYED_WORKER;

/// Every machine has a store and so many workers. The drivers are on the first one.
const MACHINES: u8 = 2;
const WORKERS: u8 = 2;
/// The same where they make chunks for Mars: of two copies of a chunk one is elsewhere, and another machine has neither.
const MARS_MACHINES: u8 = 3;
const MARS_WORKERS: u8 = 1;

/// Whose place a process takes: a machine, and there the store or a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    Store(u8),
    Worker(u8, u8),
}

/// The machines. Dropping them ends all their processes.
#[derive(Debug)]
pub struct Peers {
    binary: PathBuf,
    endpoints: Vec<String>,
    /// The loopback address of the first machine; the others follow in its second number.
    host: Ipv4Addr,
    data: PathBuf,
    /// Of each machine.
    workers: u8,
    mars: Option<MarsPeers>,
    /// Those that are to run.
    running: BTreeMap<Seat, NodeProcess>,
}

/// What makes chunks for Mars.
#[derive(Debug)]
struct MarsPeers {
    /// Plays the workers.
    program: PathBuf,
    /// That of every store, on the address of its machine: what a store keeps, it keeps under its address.
    port: ReservedPorts,
}

impl Peers {
    /// Starts them for a cluster that serves. Their data and logs are below `data`.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start_all(cluster: &Cluster, data: &Path) -> anyhow::Result<Self> {
        Self::start_on(cluster, data, (MACHINES, WORKERS), None)
    }

    /// The same for Mars: three machines, whose workers are played and whose stores keep their addresses.
    ///
    /// # Errors
    /// A process cannot be started, or there is no program that plays workers.
    pub fn start_mars(cluster: &Cluster, data: &Path) -> anyhow::Result<Self> {
        let mars = MarsPeers { program: find_chaos()?, port: ReservedPorts::reserve(1)? };
        Self::start_on(cluster, data, (MARS_MACHINES, MARS_WORKERS), Some(mars))
    }

    fn start_on(
        cluster: &Cluster,
        data: &Path,
        (machines, workers): (u8, u8),
        mars: Option<MarsPeers>,
    ) -> anyhow::Result<Self> {
        let endpoints = cluster.endpoints();
        let port = endpoints.first().and_then(|endpoint| endpoint.rsplit_once(':')?.1.parse::<u16>().ok());
        // Workers listen where the scheduler says, which is the same port in every cluster.
        let [high, low] = port.context("a cluster has an endpoint")?.to_be_bytes();
        let host = Ipv4Addr::new(127, 110, high, low.max(1));
        let (binary, running) = (find_tripod()?, BTreeMap::new());
        let mut peers = Self { binary, endpoints, host, data: data.to_owned(), workers, mars, running };
        std::fs::create_dir_all(data).with_context(|| format!("cannot make {}", data.display()))?;
        for machine in 0..machines {
            peers.start(Seat::Store(machine))?;
            for worker in 0..workers {
                peers.start(Seat::Worker(machine, worker))?;
            }
        }
        Ok(peers)
    }

    /// The address of a machine.
    #[must_use]
    pub fn host(&self, machine: u8) -> String {
        let [first, second, third, fourth] = self.host.octets();
        Ipv4Addr::new(first, second + machine, third, fourth).to_string()
    }

    /// Any worker that runs.
    #[must_use]
    pub fn worker(&self, chance: u64) -> Option<Seat> {
        self.one(chance, |seat| matches!(seat, Seat::Worker(..)))
    }

    /// Any store that runs, but for that of the drivers: what they have put is nowhere else. Mars has none.
    #[must_use]
    pub fn store_without_drivers(&self, chance: u64) -> Option<Seat> {
        let first = u8::from(self.mars.is_none());
        self.one(chance, |seat| matches!(seat, Seat::Store(machine) if *machine >= first))
    }

    /// All that run on the machine of that one.
    #[must_use]
    pub fn beside(&self, seat: Seat) -> Vec<Seat> {
        self.running.keys().copied().filter(|other| other.machine() == seat.machine()).collect()
    }

    /// SIGKILL to all of them, before the end of any is waited for.
    ///
    /// # Errors
    /// One cannot be waited for.
    pub fn kill_all(&mut self, seats: &[Seat]) -> anyhow::Result<()> {
        let mut ending: Vec<NodeProcess> =
            seats.iter().filter_map(|seat| self.running.remove(seat)).collect();
        ending.iter_mut().for_each(NodeProcess::send_kill);
        ending.iter_mut().try_for_each(|process| process.kill().map(drop))
    }

    /// Starts the process of a seat, again.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, seat: Seat) -> anyhow::Result<()> {
        let machine = seat.machine();
        let host = self.host(machine);
        let mut command = Command::new(match (&self.mars, seat) {
            (Some(mars), Seat::Worker(..)) => &mars.program,
            _ => &self.binary,
        });
        match seat {
            Seat::Store(_) => {
                let folder = self.data.join(format!("store-{machine}"));
                let port = self.mars.as_ref().map_or(0, |mars| mars.port.first());
                command.args(["objstore", "--listen", &format!("{host}:{port}"), "--directory"]).arg(folder);
                command.arg("--exit-with-parent")
            }
            Seat::Worker(..) if self.mars.is_some() => command.args([PLAYED_WORKER, "--host", &host]),
            Seat::Worker(..) => command.args(["worker", "--host", &host, "--exit-with-parent"]),
        };
        command.args(["--endpoints", &self.endpoints_of(seat)]);
        let name = seat.to_string();
        let log = self.data.join(format!("{}.log", name.replace(' ', "-")));
        self.running.insert(seat, NodeProcess::spawn(name, command, &log)?);
        Ok(())
    }

    /// Starts those again that have ended by themselves, as a supervisor would: a worker ends when its machine has no
    /// store.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn look_for_the_dead(&mut self) -> anyhow::Result<()> {
        let ended = self.running.iter_mut().filter_map(|(seat, process)| process.ended().map(|_| *seat));
        for seat in ended.collect::<Vec<_>>() {
            self.start(seat)?;
        }
        Ok(())
    }

    /// All nodes. Who is asked first differs from seat to seat: whatever cuts nodes off has peers on both sides.
    fn endpoints_of(&self, seat: Seat) -> String {
        let first = match seat {
            Seat::Store(machine) => usize::from(machine),
            Seat::Worker(machine, worker) => usize::from(machine * self.workers + worker),
        };
        let mut endpoints = self.endpoints.clone();
        let first = first % endpoints.len();
        endpoints.rotate_left(first);
        endpoints.join(",")
    }

    fn one(&self, chance: u64, suits: impl Fn(&Seat) -> bool) -> Option<Seat> {
        let seats: Vec<Seat> = self.running.keys().copied().filter(|seat| suits(seat)).collect();
        let place = chance.checked_rem(seats.len() as u64)?;
        seats.get(usize::try_from(place).ok()?).copied()
    }
}

impl Seat {
    /// Where it is.
    fn machine(self) -> u8 {
        let (Self::Store(machine) | Self::Worker(machine, _)) = self;
        machine
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(machine) => write!(f, "store {machine}"),
            Self::Worker(machine, worker) => write!(f, "worker {machine} {worker}"),
        }
    }
}
